#!/usr/bin/env python3
"""Apply renames.tsv to a worktree: tokens first. Usage: rename.py ROOT"""
import sys,os,re,subprocess,collections,csv
sys.path.insert(0,os.path.dirname(os.path.abspath(__file__)))
from lex import segments
ROOT=sys.argv[1]; os.chdir(ROOT)
TSV=sys.argv[2] if len(sys.argv)>2 else os.environ['RENAMES']
rows=[]
for line in open(TSV):
    p=line.rstrip('\n').split('\t')
    if len(p)<6 or p[0]=='kind': continue
    while len(p)<7: p.append('')
    rows.append(dict(zip(('kind','crate','path','old','new','scope','note'),p)))
MOVED={}
for r in rows:
    if r['kind']=='file' and r['path'].endswith('.rs'):
        root='/'.join(r['path'].split('/')[:2]) if r['path'].startswith('crates') else 'xtask'
        pre=r['path'][:-len(r['old'])] if r['path'].endswith(r['old']) else root+'/'
        MOVED[r['path']]=pre+r['new']
DIRS=[(os.path.dirname(a),os.path.dirname(b)) for a,b in MOVED.items() if a.endswith('/mod.rs')]
def moved(p):
    if p in MOVED: return MOVED[p]
    for a,b in DIRS:
        if p.startswith(a+'/'): return b+p[len(a):]
    return p
for r in rows: r['path']=moved(r['path']) if r['kind']!='file' else r['path']
files=[f for f in subprocess.check_output(['git','ls-files','*.rs'],text=True).split()]
text={f:open(f).read() for f in files}
def crate_of(f):
    p=f.split('/'); return p[1] if p[0]=='crates' else p[0]
def noted_files(note):
    return [moved(x) for x in re.findall(r'(?:crates|xtask)/[\w/\-.]+\.rs',note)]
UP=re.compile(r'[A-Z]\w*$')
def enum_variant_spans(src):
    """set of (start) offsets of variant identifiers"""
    blank=''.join(t if k=='code' else re.sub(r'[^\n]',' ',t) for k,t in segments(src))
    out=set()
    for m in re.finditer(r'\benum\s+\w+[^{;]*\{',blank):
        i=m.end(); depth=1; expect=True; br=0
        while i<len(blank) and depth>0:
            c=blank[i]
            if c in '{(': depth+=1
            elif c in '})': depth-=1
            elif c=='#' and depth==1:
                # skip attribute
                j=blank.index('[',i); d=1; j+=1
                while d: 
                    d+= {'[':1,']':-1}.get(blank[j],0); j+=1
                i=j; continue
            elif c==',' and depth==1: expect=True
            elif depth==1 and expect and (c.isalpha() or c=='_'):
                out.add(i); expect=False
                j=i
                while blank[j].isalnum() or blank[j]=='_': j+=1
                i=j; continue
            i+=1
    return out
# token maps per file: old -> new ; 'T' types (not after Upper::), 'F' functions/methods/consts any
conf=[]; glob={}; cands=collections.defaultdict(lambda: collections.defaultdict(list)); cratec=collections.defaultdict(lambda: collections.defaultdict(list))
for r in rows:
    k=r['kind']
    if k in('type','trait','const'):
        cls='T' if k!='const' else 'C'
    elif k in('fn','method','variant') and r['scope']=='global': cls={'fn':'F','method':'M','variant':'V'}[k]
    elif k=='fn' and r['scope']=='crate': cls='F'
    else: continue
    old=r['old'].split('::')[-1]; new=r['new'].split('::')[-1]
    if not re.fullmatch(r'\w+',old) or not re.fullmatch(r'\w+',new): print('skip odd',r['kind'],r['old'],r['new']); continue
    if r['scope']=='global': glob[old]=(cls,new)
    elif r['scope']=='crate':
        cratec[r['crate']][old].append((r['path'],cls,new))
        for f in noted_files(r['note']): cands[f][old].append((r['path'],cls,new))
    else:
        note=r['note'].split('check:')[0]
        for f in set(noted_files(note))|{r['path']}: cands[f][old].append((r['path'],cls,new))
def file_map(f):
    m=dict(glob)
    names=set(cratec.get(crate_of(f),{}))|set(cands.get(f,{}))
    for n in names:
        cs=[(os.path.commonprefix([p.split('/'),f.split('/')]),p,c,v) for p,c,v in cratec.get(crate_of(f),{}).get(n,[])+cands.get(f,{}).get(n,[])]
        cs.sort(key=lambda x:(len(x[0]),x[1]==f))
        best=cs[-1]; m[n]=(best[2],best[3])
        same={x[3] for x in cs if len(x[0])==len(best[0]) and x[1]!=best[1]}-{best[3]}
        if same and best[1]!=f: conf.append((f,n,best[3],same))
    return m
# words
WORDS={
 'aside':('waiting_rows',['rowmill-engine']),'asking':('demand',['rowmill-engine']),
 'cast':('graph',['rowmill-core','rowmill-engine','rowmill','rowmill-testkit','rowmill-data:src/traces']),
 'casting':('assignment',['rowmill-engine','rowmill']),
 'course':('row_state',['rowmill-core','rowmill-engine','rowmill']),
 'crew':('row_worker',['*']),'crews':('row_workers',['*']),
 'flight':('rows_in_flight',['rowmill-engine']),
 'graves':('reaper',['*']),
 'happening':('step_event',['rowmill-core','rowmill-engine','rowmill-store','rowmill-testkit','rowmill']),
 'happenings':('step_events',['*']),
 'lane':('endpoint',['*']),'lanes':('endpoints',['*']),
 'member':('agent_index',['rowmill-core','rowmill-engine','rowmill-testkit','rowmill-data:src/traces']),
 'members':('agents',['rowmill-core','rowmill-engine','rowmill-testkit','rowmill-data:src/traces']),
 'scene':('worker_context',['rowmill']),
 'shelf':('item_table',['*']),'speaker':('worker_identity',['rowmill']),'speakers':('traced_agents',['rowmill']),
 'staff':('batch_workers',['rowmill']),'stage':('setup',['rowmill']),
 'turnstile':('backpressure',['*']),'voice':('model_role',['*']),'voices':('model_roles',['*']),
 'walk':('row_execution',['rowmill-engine']),
}
def word_map(f):
    c=crate_of(f); m={}
    if c=='rowmill-sql': return m
    for w,(n,cs) in WORDS.items():
        for x in cs:
            if x=='*' or x==c or (':' in x and x.split(':')[0]==c and x.split(':')[1] in f):
                m[w]=('W',n)
    if c=='xtask':
        m['course']=('W','schedule'); m['stage']=('W','context'); m.pop('lane',None) if False else None
        for w in('crew','shelf'): m.pop(w,None)
    if f.endswith('batch/function_runner.rs'): m['stage']=('W','phase')
    if '/tests/agent' in f and c=='rowmill-core': m['stage']=('W','harness'); m['speaker']=('W','current_agent')
    if 'engine/tests/engine/provider' in f: m['scene']=('W','test_run')
    if c=='rowmill-data' and 'traces' not in f: m['walk']=('W','folder_walk')
    return m
ident=re.compile(r'(?<![\w\'])[A-Za-z_]\w*')
def subst_code(seg,m,variants,base,prev=''):
    def rep(mm):
        w=mm.group(0)
        if w not in m: return w
        cls,new=m[w]
        before=(prev+seg)[:len(prev)+mm.start()]
        after=seg[mm.end():mm.end()+3]
        mt=re.search(r'([A-Za-z_]\w*)\s*::\s*(?:<[^<>]*>::\s*)?$',before)
        if cls=='T':
            if mt and UP.match(mt.group(1)): return w
            if (base+mm.start()) in variants: return w
            return new
        if cls=='W':
            return new
        if cls=='F' and re.search(r'\bmod\s+$',before): return w
        if cls=='F' and re.match(r'\s*::',seg[mm.end():mm.end()+4]): return w
        if cls=='M' and (w in('next_up',) or not re.search(r'(\.|::|\bfn\s)\s*$',before)): return w
        if cls=='F' and re.search(r'\.\s*$',before) and not before.endswith('..'): return w
        if cls=='V':
            if (base+mm.start()) in variants or (mt and UP.match(mt.group(1))): return new
            return w
        return new
    return ident.sub(rep,seg)
CODESPAN=re.compile(r'`[^`\n]*`|\[[\w:`]+\]|\(crate::[^)]*\)')
def apply(f,src):
    m=dict(word_map(f)); m.update(file_map(f))
    variants=enum_variant_spans(src)
    out=[]; pos=0; prev=''
    for k,t in segments(src):
        if k=='code': o=subst_code(t,m,variants,pos,prev)
        elif k=='comment':
            o=CODESPAN.sub(lambda s: subst_code(s.group(0),m,(),-10**9),t)
        elif k=='str':
            body=t.strip('"')
            # inline format captures of renamed locals
            o=re.sub(r'\{(\w+)((?::[^{}]*)?)\}',lambda s: '{'+(m[s.group(1)][1] if s.group(1) in m and m[s.group(1)][0]=='W' else s.group(1))+s.group(2)+'}',t)
            if '::' in body and ' ' not in body: o=subst_code(o,m,(),-10**9)
        else: o=t
        out.append(o); pos+=len(t); prev=(prev+t)[-80:]
    return ''.join(out)
if __name__=='__main__':
    new={f:apply(f,s) for f,s in text.items()}
    n=0
    for f in files:
        if new[f]!=text[f]: open(f,'w').write(new[f]); n+=1
    print('files changed',n)
    for c in conf: print('CONFLICT',c)
