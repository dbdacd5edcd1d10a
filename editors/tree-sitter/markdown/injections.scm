; extends

; `{{ … }}` and `{% … %}` in a prompt.
((inline) @injection.content
  (#match? @injection.content "\\{[{%]")
  (#set! injection.language "jinja"))
