-- For `vim.lsp.enable("swarmc")`, from Neovim 0.11 on.
return require("swarmc").config()
