;;; swarmc.el --- Workflows of swarmc, with Eglot -*- lexical-binding: t -*-

;; Package-Requires: ((emacs "28.1") (eglot "1.9"))

;;; Commentary:

;; (load "/path/to/editors/emacs/swarmc.el") in the init file: specs open in `swarmc-kdl-mode', where no other mode for KDL
;; is installed, and Eglot starts the server in specs, and in Markdown files below a folder with `swarmc.kdl' or `.git'
;; when `swarmc-prompts' is on.

;;; Code:

(require 'eglot)

(defgroup swarmc nil
  "Workflows of swarmc."
  :group 'languages)

(defcustom swarmc-command '("swarmc" "lsp")
  "What the language server is started with."
  :type '(repeat string))

(defcustom swarmc-prompts t
  "Whether the server is started in Markdown files too, which may be prompts."
  :type 'boolean)

(defvar swarmc-kdl-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 124" table)
    (modify-syntax-entry ?* ". 23bn" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?- "_" table)
    (modify-syntax-entry ?_ "_" table)
    table)
  "Comments, strings and names of KDL.")

(defvar swarmc-kdl-font-lock-keywords
  '(("^\\s-*\\(?:/-\\)?\\([a-z][a-z0-9-]*\\)" 1 font-lock-keyword-face)
    ("\\_<\\([a-z][a-z0-9-]*\\)=" 1 font-lock-variable-name-face)
    ("#\\(?:true\\|false\\|null\\)\\_>" . font-lock-constant-face)
    ("<<\\([a-z]+\\)[^>\n]*>>" 0 font-lock-preprocessor-face t))
  "What stands out in a spec before the server says more.")

;;;###autoload
(define-derived-mode swarmc-kdl-mode prog-mode "KDL"
  "A mode for specs."
  (setq-local comment-start "// ")
  (setq-local comment-start-skip "//+\\s-*")
  (setq-local indent-tabs-mode nil)
  (setq-local tab-width 4)
  (setq-local font-lock-defaults '(swarmc-kdl-font-lock-keywords)))

(unless (assoc "\\.kdl\\'" auto-mode-alist)
  (add-to-list 'auto-mode-alist '("\\.kdl\\'" . swarmc-kdl-mode)))

(defun swarmc--contact (&optional _interactive)
  "The command of the server, or what to do when it is missing."
  (unless (executable-find (car swarmc-command))
    (user-error "`%s' is not on `exec-path': install it, or set `swarmc-command'" (car swarmc-command)))
  swarmc-command)

(add-to-list 'eglot-server-programs
             '((swarmc-kdl-mode kdl-mode kdl-ts-mode markdown-mode gfm-mode) . swarmc--contact))

(defun swarmc--start-in-prompt ()
  "Start the server in a Markdown file of a project."
  (when (and swarmc-prompts buffer-file-name (executable-find (car swarmc-command))
             (or (locate-dominating-file buffer-file-name "swarmc.kdl")
                 (locate-dominating-file buffer-file-name ".git")))
    (eglot-ensure)))

(dolist (hook '(swarmc-kdl-mode-hook kdl-mode-hook kdl-ts-mode-hook))
  (add-hook hook #'eglot-ensure))
(add-hook 'markdown-mode-hook #'swarmc--start-in-prompt)

(provide 'swarmc)
;;; swarmc.el ends here
