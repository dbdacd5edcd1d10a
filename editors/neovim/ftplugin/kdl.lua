vim.bo.commentstring = "// %s"
