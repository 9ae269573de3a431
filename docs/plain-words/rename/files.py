#!/usr/bin/env python3
"""Move files and rename modules. Usage: files.py ROOT TSV (run before rename.py, on unchanged names of modules)"""
import sys,os,re,subprocess
sys.path.insert(0,os.path.dirname(os.path.abspath(__file__)))
from lex import segments
ROOT=sys.argv[1]; os.chdir(ROOT); TSV=sys.argv[2]
def crate_root(f):
    p=f.split('/'); return '/'.join(p[:2]) if p[0]=='crates' else p[0]
def modpath(f):
    """(key, [segments]) of the module of a file; tests have their own root"""
    root=crate_root(f); rel=f[len(root)+1:]
    if rel.startswith('src/'): key=root; parts=rel[4:].split('/')
    elif rel.startswith('tests/'):
        parts=rel[6:].split('/'); key=root+'/tests/'+parts[0]; parts=parts[1:] or ['main.rs']
    else: key=root+'/'+rel; parts=['main.rs']
    last=parts[-1][:-3]; parts=parts[:-1]
    if last not in('mod','lib','main'): parts.append(last)
    return key,parts
moves=[]
for line in open(TSV):
    p=line.rstrip('\n').split('\t')
    if p[0]!='file' or not p[2].endswith('.rs'): continue
    old=p[2]; root=crate_root(old)
    pre=old[:-len(p[3])] if old.endswith(p[3]) else root+'/'
    new=pre+p[4]
    if not os.path.exists(old): print('missing',old); continue
    moves.append((old,new))
mods={}  # (key, tuple(oldpath)) -> newname
dirs=[]
for old,new in moves:
    k,op=modpath(old); k2,np=modpath(new)
    if op and op[-1]!=np[-1]: mods[(k,tuple(op))]=np[-1]
    if old.endswith('/mod.rs'): dirs.append((os.path.dirname(old),os.path.dirname(new)))
    else:
        d=old[:-3]
        if os.path.isdir(d): dirs.append((d,new[:-3]))
print(len(moves),'moves',len(mods),'modules',dirs)
ident=re.compile(r'(?<![\w\'])[A-Za-z_]\w*')
def crate_name(key): 
    r=key.split('/tests/')[0]; return r.split('/')[-1].replace('-','_')
srckeys={crate_name(k):k for k in {modpath(f)[0] for f in subprocess.check_output(['git','ls-files','*.rs'],text=True).split()} if '/tests/' not in k}
def rewrite_code(f,src):
    key,me=modpath(f)
    blank=''.join(t if k=='code' else re.sub(r'[^\n]',' ',t) for k,t in segments(src))
    reps={}
    def resolve(prefix,name):
        """prefix: list of path segments before name ([] bare). Returns new name or None"""
        cand=[]
        if prefix and prefix[0]=='crate': cand.append((key,tuple(prefix[1:]+[name])))
        elif prefix and prefix[0] in srckeys: cand.append((srckeys[prefix[0]],tuple(prefix[1:]+[name])))
        else:
            base=list(me); rest=list(prefix)
            variants=[base]
            if rest and rest[0]=='self': rest=rest[1:]
            elif rest and rest[0]=='super':
                n=0
                while rest and rest[0]=='super': n+=1; rest=rest[1:]
                variants=[base[:len(base)-n]] + ([base[:len(base)-n+1]] if n>=1 else [])
            for b in variants: cand.append((key,tuple(b+rest+[name])))
        for c in cand:
            if c in mods: return mods[c]
    # mod declarations
    for m in re.finditer(r'\bmod\s+(\w+)\s*;',blank):
        n=mods.get((key,tuple(me+[m.group(1)])))
        if n: reps[m.start(1)]=(m.group(1),n)
    # use trees
    usespans=[]
    for m in re.finditer(r'\buse\s+([^;]*);',blank):
        usespans.append((m.start(1),m.end(1)))
        stack=[[]]; cur=[]
        for t in re.finditer(r'[A-Za-z_]\w*|::|[{},*]',m.group(1)):
            s=t.group(0); off=m.start(1)+t.start()
            if s=='{': stack.append(list(cur)); 
            elif s=='}': cur=stack.pop()
            elif s==',': cur=list(stack[-1])
            elif s in('::','*'): pass
            elif s=='as': cur=cur+['\0']
            else:
                n=resolve(cur,s) if '\0' not in cur else None
                nxt=m.group(1)[t.end():].lstrip()[:2]
                # a bare name at the end may be an item of the same name; only when not followed by '::' mark as soft
                if n and (nxt=='::' or True): reps.setdefault(off,(s,n, nxt=='::'))
                cur=cur+[s]
    inuse=lambda o: any(a<=o<b for a,b in usespans)
    # paths in expressions
    for m in re.finditer(r'(?<![\w.:\'])((?:[A-Za-z_]\w*\s*::\s*)+)',blank):
        if inuse(m.start()): continue
        segs=[(x.group(0),m.start()+x.start()) for x in re.finditer(r'[A-Za-z_]\w*',m.group(1))]
        pre=[]
        for s,off in segs:
            n=resolve(pre,s)
            if n: reps[off]=(s,n)
            pre.append(s)
    # pub(in path)
    out=src
    for off in sorted(reps,reverse=True):
        o,n=reps[off][:2]
        if len(reps[off])==3 and not reps[off][2]:
            # module imported by name, unless an item (fn/type) is meant: only lower-case names of modules
            pass
        assert out[off:off+len(o)]==o,(f,o,out[off:off+20])
        out=out[:off]+n+out[off+len(o):]
    return out
allf=subprocess.check_output(['git','ls-files','*.rs'],text=True).split()
n=0
for f in allf:
    s=open(f).read(); t=rewrite_code(f,s)
    # #[path = "x.rs"] of moved test files; doc links to crate::mod
    for old,new in moves:
        if crate_root(old)==crate_root(f) and os.path.dirname(old)==os.path.dirname(f):
            t=t.replace('"%s"'%os.path.basename(old),'"%s"'%os.path.basename(new))
    if t!=s: open(f,'w').write(t); n+=1
for a,b in dirs:
    subprocess.check_call(['git','mv',a,b])
for old,new in moves:
    o=old
    for a,b in dirs: 
        if o.startswith(a+'/'): o=b+o[len(a):]
    if o!=new and os.path.exists(o):
        os.makedirs(os.path.dirname(new),exist_ok=True); subprocess.check_call(['git','mv',o,new])
    elif not os.path.exists(new): print('not moved',old,new)
print('rewrote',n)
