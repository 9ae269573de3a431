import re
# Segments of Rust source: ('code'|'comment'|'str'|'char', text)
TOK = re.compile(r'''
  (?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
 |(?P<raw>b?c?r(?P<h>\#*)"(?:.|\n)*?"(?P=h))
 |(?P<str>b?c?"(?:\\.|\\\n|[^"\\])*")
 |(?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.)|[^\\'\n])')
''', re.X|re.S)
def segments(src):
    pos=0
    for m in TOK.finditer(src):
        # raw must not be preceded by identifier char
        s=m.start()
        if m.lastgroup in('raw','h') or m.group('raw'):
            if s>0 and (src[s-1].isalnum() or src[s-1]=='_'):
                pass
        if s>pos: yield ('code',src[pos:s])
        kind='comment' if m.group('comment') else 'str' if (m.group('str') or m.group('raw')) else 'char'
        yield (kind,m.group(0)); pos=m.end()
    if pos<len(src): yield ('code',src[pos:])
