#!/usr/bin/env python3
"""Rename definitions of methods, fields, variants and functions of one file. Usage: defs.py ROOT TSV"""
import sys,os,re,json
sys.argv=[sys.argv[0],sys.argv[1],sys.argv[2]]
sys.path.insert(0,os.path.dirname(os.path.abspath(__file__)))
from lex import segments
import rename as R   # chdirs and loads rows, text
def blanked(src): return ''.join(t if k=='code' else re.sub(r'[^\n]',' ',t) for k,t in segments(src))
def close(b,i):
    d=1
    while d:
        c=b[i]
        if c=='{': d+=1
        elif c=='}': d-=1
        i+=1
    return i
def blocks(b):
    """(kind, typename, traitname, start, end) of impl/trait/struct/enum bodies"""
    out=[]
    for m in re.finditer(r'(?:^|(?<=[\s;}]))(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(impl|trait|struct|enum|union)\b([^;{}]*)\{',b):
        head=m.group(2); k=m.group(1)
        if k=='impl':
            h=head
            # strip leading generics
            if h.startswith('<'):
                d=0
                for i,c in enumerate(h):
                    if c=='<': d+=1
                    elif c=='>' and h[i-1]!='-': 
                        d-=1
                        if d==0: h=h[i+1:]; break
            h=h.split(' where ')[0]
            h=re.sub(r'\bwhere\b.*','',h,flags=re.S)
            tr=None
            if ' for ' in h:
                tr,h=h.split(' for ',1); tr=re.sub(r'<.*','',tr,flags=re.S).strip().split('::')[-1]
            h=re.sub(r"^\s*(&\s*('\w+\s*)?(mut\s+)?)?(dyn\s+)?",'',h)
            ty=re.sub(r'<.*','',h,flags=re.S).strip().split('::')[-1]
        else:
            mm=re.match(r'\s*(\w+)',head); ty=mm.group(1) if mm else ''; tr=None
        out.append((k,ty,tr,m.end(),close(b,m.end())))
    return out
done=0; missing=[]
edits={}
MAP={'method':[], 'field':[], 'variant':[], 'fn':[], 'type':[]}
for r in R.rows:
    k=r['kind']
    if k not in('fn','method','field','variant'): continue
    f=r['path']
    if f not in R.text: missing.append(('nofile',k,f,r['old'])); continue
    old=r['old'].split('::')[-1]; new=r['new'].split('::')[-1]
    if not re.fullmatch(r'\w+',old) or not re.fullmatch(r'\w+',new): missing.append(('odd',k,f,r['old'],r['new'])); continue
    fm=R.file_map(f); wm=R.word_map(f)
    ty=r['old'].split('::')[0] if '::' in r['old'] else ''
    nty=fm.get(ty,(0,ty))[1]
    MAP[k].append(dict(path=f,ty=nty,oldty=ty,old=old,new=new,scope=r['scope'],crate=r['crate']))
    src=R.text[f]; b=blanked(src); bl=blocks(b)
    olds=[old]+([wm[old][1]] if old in wm else [])
    spans=[]
    if k=='fn':
        for o in olds:
            for m in re.finditer(r'\bfn\s+(%s)\b'%o,b):
                inside=[x for x in bl if x[0] in('impl','trait') and x[3]<=m.start()<x[4]]
                if not inside: spans.append((m.start(1),o))
    elif k=='method':
        for x in bl:
            if x[0] in('impl','trait') and x[1]==nty and not x[2]:
                for o in olds:
                    for m in re.finditer(r'\bfn\s+(%s)\b'%o,b[x[3]:x[4]]): spans.append((x[3]+m.start(1),o))
    elif k=='field':
        for x in bl:
            if x[0] in('struct','union') and x[1]==nty:
                for o in olds:
                    for m in re.finditer(r'(?:^|[\s,{(])(%s)\s*:(?!:)'%o,b[x[3]-1:x[4]]): spans.append((x[3]-1+m.start(1),o))
            if x[0]=='enum' and x[1]==nty:
                for o in olds:
                    for m in re.finditer(r'(?:^|[\s,{(])(%s)\s*:(?!:)'%o,b[x[3]-1:x[4]]): spans.append((x[3]-1+m.start(1),o))
    else:
        vs=R.enum_variant_spans(src)
        for x in bl:
            if x[0]=='enum' and x[1]==nty:
                for v in vs:
                    if x[3]<=v<x[4] and re.match(r'%s\b'%old,b[v:]): spans.append((v,old))
    if not spans:
        # already renamed by tokens?
        if re.search(r'\b%s\b'%new,b): continue
        missing.append((k,f,r['old'],r['new'],r['scope']))
        continue
    for s in spans: edits.setdefault(f,{})[s[0]]=(s[1],new)
for f,e in edits.items():
    s=R.text[f]
    for off in sorted(e,reverse=True):
        o,n=e[off]; assert s[off:off+len(o)]==o
        s=s[:off]+n+s[off+len(o):]; done+=1
    open(f,'w').write(s)
json.dump(MAP,open(os.environ['RENAME_MAP'],'w'))
print('definitions',done,'missing',len(missing))
for m in missing: print(m)
