; extends

; `{{ … }}` and `{% … %}` in a prompt, which is one template: what a statement opens may end paragraphs later.
([(inline) (pipe_table_cell)] @injection.content
  (#match? @injection.content "[{][{%]")
  (#set! injection.language "jinja")
  (#set! injection.combined))
