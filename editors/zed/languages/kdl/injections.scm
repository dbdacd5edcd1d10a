; `{{ … }}` and `{% … %}` in any text of a spec, where an extension for Jinja is installed.
((string_fragment) @injection.content
  (#match? @injection.content "[{][{%]")
  (#set! injection.language "jinja2"))
