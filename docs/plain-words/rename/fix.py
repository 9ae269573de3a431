#!/usr/bin/env python3
"""Let the compiler point at uses of renamed names. Usage: fix.py ROOT [--max N] [cargo args...]"""
import sys,os,re,json,subprocess,collections
ROOT=sys.argv[1]; os.chdir(ROOT); extra=sys.argv[2:] or ['--workspace','--all-targets']
MAP=json.load(open(os.environ['RENAME_MAP']))
NEWPATH={}
for l in open(os.environ['RENAMES']):
    p=l.rstrip('\n').split('\t')
    if p[0]=='file' and p[2].endswith('.rs'):
        root='/'.join(p[2].split('/')[:2]) if p[2].startswith('crates') else 'xtask'
        pre=p[2][:-len(p[3])] if p[2].endswith(p[3]) else root+'/'
        NEWPATH[p[2]]=pre+p[4]
OLD2NEW=collections.defaultdict(set)
for l in open(os.environ['RENAMES']):
    p=l.rstrip('\n').split('\t')
    if p[0] in('type','trait'): OLD2NEW[p[3]].add(p[4])
NOTES={}
for l in open(os.environ['RENAMES']):
    p=l.rstrip('\n').split('\t')
    if len(p)>6: NOTES[(NEWPATH.get(p[2],p[2]),p[3].split('::')[-1],p[4].split('::')[-1])]=p[6]
_ft={}
def FILETEXT(f):
    return open(f).read() if os.path.exists(f) else ''
def score(e,f,ids):
    n=0
    ids=ids-{e['old']}
    if re.search(r'\buse\b[^;]*\b%s\b'%e['new'],FILETEXT(f)): n+=8
    if f in [NEWPATH.get(x,x) for x in re.findall(r'(?:crates|xtask)/[\w/\-.]+\.rs',NOTES.get((e['path'],e['old'],e['new']),'').split('check:')[0])]: n+=10
    if f in [NEWPATH.get(x,x) for x in re.findall(r'(?:crates|xtask)/[\w/\-.]+\.rs',e.get('note',''))]: n+=10
    if e['crate'].replace('-','_') in ids: n+=6
    elif e['crate']==crate_of(f) and not any(i.startswith('rowmill_') for i in ids): n+=5
    segs=set()
    for x in (e['path'],NEWPATH.get(e['path'],e['path'])):
        q=x.split('/')[3:] if x.startswith('crates') else x.split('/')[2:]
        segs|={y.replace('.rs','') for y in q}
    n+=len(segs&ids)
    return n
TSV=os.environ['RENAMES']
rows=[l.rstrip('\n').split('\t') for l in open(TSV)]
by=collections.defaultdict(list)
for k,es in MAP.items():
    for e in es: by[e['old']].append(dict(e,kind=k))
for p in rows:
    if p[0] in('type','trait','const','fn','method') and re.fullmatch(r'\w+',p[3].split('::')[-1]) and re.fullmatch(r'\w+',p[4]):
        if p[0]=='fn' and p[5]=='file': continue
        if p[0]=='method' and p[5]=='file': continue
        by[p[3].split('::')[-1]].append(dict(kind=p[0],old=p[3].split('::')[-1],new=p[4],ty=p[3].split('::')[0] if '::' in p[3] else '',oldty='',crate=p[1],path=p[2],scope=p[5],note=p[6] if len(p)>6 else ''))
    if p[0]=='file' and p[2].endswith('.rs'):
        o=os.path.basename(p[3])[:-3]; n=os.path.basename(p[4])[:-3]
        if o=='mod': o=os.path.basename(os.path.dirname(p[3])); n=os.path.basename(os.path.dirname(p[4]))
        if o!=n: by[o].append(dict(kind='mod',old=o,new=n,ty='',oldty='',crate=p[1],path=p[2],scope='crate'))
extra_map=os.environ.get('RENAME_EXTRA','')   # old \t new \t (type or crate or empty)
if os.path.exists(extra_map):
    for l in open(extra_map):
        q=l.rstrip('\n').split('\t')
        if len(q)>=2: by[q[0]].append(dict(kind='any',old=q[0],new=q[1],ty=q[2] if len(q)>2 else '',oldty='',crate=q[2] if len(q)>2 else '',path='',scope=''))
def crate_of(f):
    p=f.split('/'); return p[1] if p[0]=='crates' else p[0]
MEMBER={'E0599','E0609','E0615','E0616','E0610','E0560','E0559','E0026','E0407','E0624','E0437','E0576','E0220'}
FIELDK={'E0609','E0560','E0559','E0026','E0610'}
RES={'E0425','E0432','E0433','E0412','E0405','E0531','E0574','E0422','E0423','E0404','E0583','E0603','E0532','E0408'}
def pick(cands,f,msg,code,sugg):
    cands=[e for e in cands if e['kind']!='mod' or e['crate']==crate_of(f)]
    if code in RES and any(e['kind'] in('fn','type','trait','const') for e in cands): cands=[e for e in cands if e['kind']!='mod'] if (code!='E0433') else cands
    if not cands: return None
    ids=set(re.findall(r'\w+',' '.join(re.findall(r'`([^`]*)`',msg))))
    if code in MEMBER:
        kinds=('field','any') if code in FIELDK else ('method','variant','fn','any','field')
        c=[e for e in cands if e['kind'] in kinds]
        t=[e for e in c if e['ty'] and (e['ty'] in ids or OLD2NEW[e['ty']]&ids)]
        if t: c=t
        else:
            c=[e for e in c if e['new'] in sugg or (e['kind']=='any' and not e['ty'])]
    else:
        c=[e for e in cands if e['kind'] in('fn','type','trait','const','mod','any')] or cands
        s=[e for e in c if e['new'] in sugg]
        if s: c=s
        if len({e['new'] for e in c})>1 or code in('E0425','E0432'):
            sc=sorted(((score(e,f,ids),e['new']) for e in c),reverse=True)
            top=[x for x in sc if x[0]==sc[0][0]]
            if not top or len({x[1] for x in top})>1 or (top[0][0]<5 and not s and len({e['new'] for e in c})>1): return None
            return top[0][1]
    news={e['new'] for e in c}
    if len(news)==1: return news.pop()
    # nearest definition
    best=sorted(c,key=lambda e:len(os.path.commonprefix([e['path'],f])))
    if len(best)>1 and len(os.path.commonprefix([best[-1]['path'],f]))>len(os.path.commonprefix([best[-2]['path'],f])) and code in RES: return best[-1]['new']
    return None
it=0
while True:
    it+=1
    p=subprocess.run(['cargo','check','--keep-going','--message-format=json','-q']+extra,capture_output=True,text=True)
    reps=collections.defaultdict(dict); left=collections.Counter(); leftmsg=[]
    nerr=0
    for l in p.stdout.splitlines():
        try: m=json.loads(l)
        except ValueError: continue
        if m.get('reason')!='compiler-message': continue
        d=m['message']
        if d['level']!='error': continue
        nerr+=1
        code=(d.get('code') or {}).get('code','')
        sugg=set()
        for ch in d['children']:
            for s in ch['spans']:
                if s.get('suggested_replacement'): sugg|=set(re.findall(r'\w+',s['suggested_replacement']))
            sugg|=set(re.findall(r'`(\w+)`',ch['message']))
        hit=False
        for s in d['spans']:
            if not s['is_primary'] : continue
            if s.get('expansion'):
                e=s
                while e.get('expansion'): e=e['expansion']['span']
                if not os.path.exists(e['file_name']): continue
                if s['file_name'].startswith('/'): s=e
            f=s['file_name']
            if not os.path.exists(f) or f.startswith('/'): continue
            data=open(f,'rb').read()
            t=data[s['byte_start']:s['byte_end']].decode()
            mms=list(re.finditer(r'[A-Za-z_]\w*',t))
            for mm in (reversed(mms) if code in RES else mms):
                w=mm.group(0)
                if len(t)!=len(w) and w not in re.findall(r'\w+',d['message']): continue
                if w not in by: continue
                n=pick(by[w],f,d['message']+' `'+t+'`',code,sugg)
                if n and n!=w:
                    a=s['byte_start']+len(t[:mm.start()].encode()); b=a+len(w.encode())
                    out=n
                    if code in('E0560','E0026','E0559'):
                        after=data[b:b+6].decode(errors='ignore').lstrip()
                        if not after.startswith(':') or after.startswith('::'): out=n+': '+w
                    reps[f][a]=(b,out); hit=True; break
            if hit: break
        if not hit:
            left[code]+=1; leftmsg.append((code,d['message'],d['spans'][0]['file_name']+':'+str(d['spans'][0]['line_start']) if d['spans'] else ''))
    n=0
    for f,e in reps.items():
        data=open(f,'rb').read()
        for a in sorted(e,reverse=True):
            b,o=e[a]; data=data[:a]+o.encode()+data[b:]; n+=1
        open(f,'wb').write(data)
    print('iteration',it,'errors',nerr,'replaced',n,'left',dict(left),flush=True)
    if n==0 or it>=40:
        seen=set()
        for m in leftmsg:
            if m in seen: continue
            seen.add(m); print(*m)
            if len(seen)>60: break
        if p.returncode and not nerr: print(p.stderr[-3000:])
        break
