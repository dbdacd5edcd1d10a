; extends

; `{{ … }}` and `{% … %}` in any text of a spec; all of it, so that an escape does not end what a statement opens.
((string) @injection.content
  (#match? @injection.content "[{][{%]")
  (#set! injection.language "jinja")
  (#set! injection.include-children))
