#!/usr/bin/env python3
"""Keep the outside names of serialised fields and variants. Usage: post.py ROOT TSV [BASE]"""
import sys,os,re,subprocess
ROOT,TSV=sys.argv[1],sys.argv[2]; BASE=sys.argv[3] if len(sys.argv)>3 else 'HEAD'
sys.argv=[sys.argv[0],ROOT,TSV]
sys.path.insert(0,os.path.dirname(os.path.abspath(__file__)))
from lex import segments
import rename as R
def blanked(src): return ''.join(t if k=='code' else re.sub(r'[^\n]',' ',t) for k,t in segments(src))
def nocomment(src): return ''.join(t if k!='comment' else re.sub(r'[^\n]',' ',t) for k,t in segments(src))
def close(b,i):
    d=1
    while d:
        d+={'{':1,'}':-1}.get(b[i],0); i+=1
    return i
DER=re.compile(r'Serialize|Deserialize|JsonSchema|\bArgs\b|\bParser\b|ValueEnum|Subcommand|FromArgs')
def types(src):
    b=blanked(src); c=nocomment(src); out=[]
    for m in re.finditer(r'((?:#\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]\s*)+)(?:pub(?:\([^)]*\))?\s+)?(struct|enum)\s+(\w+)[^;{}()]*\{',c):
        # attrs immediately before
        attrs=m.group(1)
        if not DER.search(attrs): continue
        if b[m.end()-1]!='{': continue
        e=close(b,m.end()); body=m.end()
        names=[]
        i=body; depth=0; start=body; 
        # split at depth-0 commas
        j=body; d=0
        while j<e-1:
            ch=b[j]
            if ch in '{([': d+=1
            elif ch in '})]': d-=1
            elif ch=='<' : d+=1
            elif ch=='>' and b[j-1] not in '-=' : d-=1
            elif ch==',' and d==0:
                names.append((start,j)); start=j+1
            j+=1
        names.append((start,e-1))
        items=[]
        for a,z in names:
            t=c[a:z]; tb=b[a:z]
            # skip attributes
            k=0; attr=''
            while True:
                mm=re.match(r'\s*#\[',tb[k:])
                if not mm: break
                q=k+mm.end(); dd=1
                while dd:
                    dd+={'[':1,']':-1}.get(tb[q],0); q+=1
                attr+=t[k:q]; k=q
            mm=re.match(r'\s*(?:pub(?:\([^)]*\))?\s+)?([A-Za-z_]\w*)',tb[k:])
            if mm: items.append((mm.group(1),a+k+mm.start(1),attr,a+k+len(re.match(r'\s*',tb[k:]).group(0))))
            # struct-like variants: nested fields
            if m.group(2)=='enum' and mm and '{' in tb[k:]:
                o=tb.index('{',k); inner=tb[o+1:]
                for fm in re.finditer(r'(?:^|[\n,{(]\s*)(?:pub\s+)?([a-z_]\w*)\s*:(?!:)',inner): items.append(('.'+fm.group(1),a+o+1+fm.start(1),t[k+o+1:k+o+1+fm.start(1)].rsplit(',',1)[-1],a+o+1+fm.start(1)))
        out.append((m.group(2),m.group(3),attrs,items))
    return out
def case(name,style):
    if style=='snake_case': return re.sub(r'(?<!^)(?=[A-Z])','_',name).lower()
    if style=='kebab-case': return re.sub(r'(?<!^)(?=[A-Z])','-',name).lower().replace('_','-')
    if style=='lowercase': return name.lower()
    if style=='camelCase':
        if '_' in name:
            p=name.split('_'); return p[0]+''.join(x.title() for x in p[1:])
        return name[0].lower()+name[1:]
    if style=='SCREAMING_SNAKE_CASE': return re.sub(r'(?<!^)(?=[A-Z])','_',name).upper()
    return name
old_files=subprocess.check_output(['git','ls-tree','-r','--name-only',BASE],text=True).split()
n=0
for f in old_files:
    if not f.endswith('.rs'): continue
    g=R.moved(f)
    if not os.path.exists(g): print('gone',f,g); continue
    o=subprocess.check_output(['git','show',BASE+':'+f],text=True); s=open(g).read()
    to,tn=types(o),types(s)
    if len(to)!=len(tn): print('DIFFERENT COUNT',f,len(to),len(tn)); continue
    ins=[]
    for (k,a,at,io),(k2,b,at2,inn) in zip(to,tn):
        if len(io)!=len(inn): print('DIFFERENT ITEMS',f,a,b); continue
        ser=re.search(r'Serialize|Deserialize|JsonSchema',at)
        style=re.search(r'rename_all\s*=\s*"([^"]+)"',at); style=style.group(1) if style else ''
        for x,y in zip(io,inn):
            if x[0]!=y[0]:
                if x[0].startswith('.'):
                    st=re.search(r'rename_all_fields\s*=\s*"([^"]+)"',at); outer=case(x[0][1:],st.group(1) if st else '')
                else: outer=case(x[0],style)
                if re.search(r'\b(rename\s*=|flatten|skip)\b',y[2]): print('has attr',g,b,x[0],y[0],y[2].strip()[:80]); continue
                print(g,b,x[0],'->',y[0],'outer',outer,'' if ser else 'NOT SERDE (clap?) '+at[:60].replace('\n',' '))
                if ser: ins.append((y[3],'#[serde(rename = "%s")]\n'%outer)); n+=1
    for off,t in sorted(ins,reverse=True): s=s[:off]+t+s[off:]
    if ins: open(g,'w').write(s)
print('inserted',n)
