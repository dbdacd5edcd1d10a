;;; emacs.el --- Types in an Emacs with Eglot, and looks at what is shown -*- lexical-binding: t -*-

;; Run by tests/editors.rs: `emacs --batch -l emacs.el' with SWARMC (the program), CONFIG (the file from editors/emacs) and
;; WORKSPACE (a copy of specs/feature).  Each check prints a line; the first that fails ends it.

;;; Code:

(require 'package)
(package-initialize)
(require 'flymake)
(load (getenv "CONFIG") nil t)
(setq swarmc-command (list (getenv "SWARMC") "lsp")
      make-backup-files nil
      auto-save-default nil
      create-lockfiles nil
      eglot-confirm-server-initiated-edits nil
      eglot-send-changes-idle-time 0)

(defun pause ()
  "What happens when a person does nothing for a while."
  (accept-process-output nil 0.02)
  (dolist (timer (copy-sequence timer-idle-list))
    (timer-event-handler timer)))

(defun eventually (what check)
  "Wait until CHECK gives something, and say WHAT that is."
  (let ((end (+ (float-time) 30)) found)
    (while (not (or (setq found (funcall check)) (> (float-time) end)))
      (pause))
    (unless found
      (princ (format "not ok - %s\n%s\n" what (buffer-string)) #'external-debugging-output)
      (princ (format "%S\n" (mapcar #'flymake-diagnostic-text (flymake-diagnostics))) #'external-debugging-output)
      (kill-emacs 1))
    (princ (format "ok - %s\n" what))
    found))

(defun open (file)
  "Visit FILE of the workspace, as a person does."
  (find-file (expand-file-name file (getenv "WORKSPACE")))
  (run-hooks 'post-command-hook)
  (eventually (format "%s is open, with the server" file)
              (lambda () (and (eglot-managed-p) (eglot-current-server)))))

(defun told (text)
  "The problem that says TEXT."
  (flymake-start)
  (seq-find (lambda (found) (string-match-p (regexp-quote text) (flymake-diagnostic-text found))) (flymake-diagnostics)))

(defun right ()
  "Whether no problem is shown."
  (flymake-start)
  (null (flymake-diagnostics)))

(defun offered ()
  "What may stand at the cursor."
  (pcase (run-hook-wrapped 'completion-at-point-functions #'completion--capf-wrapper 'all)
    (`(,_ ,start ,end ,table . ,_)
     (all-completions (buffer-substring-no-properties start end) table))))

;; Diagnostics as one types, in a prompt.
(open "prompts/coder.md")
(goto-char (point-max))
(insert "hand it to <<output:plannr>>")
(let ((found (eventually "a wrong name is told while the prompt is written" (lambda () (told "plannr")))))
  (unless (equal "plannr" (buffer-substring-no-properties (flymake-diagnostic-beg found) (flymake-diagnostic-end found)))
    (error "It is told elsewhere"))
  (goto-char (flymake-diagnostic-beg found)))
(let ((choose (lambda (_ choices &rest _)
                (seq-find (lambda (choice) (string-prefix-p "write" choice)) (mapcar #'car choices)))))
  (cl-letf (((symbol-function 'completing-read) choose))
    (eglot-code-actions (point) nil "quickfix" t)))
(eventually "a code action mends it" (lambda () (string-match-p "hand it to <<output:planner>>" (buffer-string))))
(eventually "and then nothing is wrong" #'right)

;; Completion inside a directive.
(goto-char (point-max))
(insert "<<output:")
(eventually "inside `<<output:' the step before this one is offered"
            (lambda () (seq-some (lambda (label) (string-prefix-p "plan" label)) (offered))))
;; The server names the version of each text that it edits: Eglot sends a change only after a pause.
(delete-region (line-beginning-position) (line-end-position))
(pause)

;; What a name is.
(open "feature.kdl")
(goto-char (point-min))
(search-forward "task plan")
(let ((shown (eventually "a task says what it is"
                         (lambda () (jsonrpc-request (eglot-current-server) :textDocument/hover
                                                     (eglot--TextDocumentPositionParams))))))
  (unless (string-match-p "Task of pipeline" (format "%S" shown)) (error "It says %S" shown)))

;; Rename, over files.
(cl-letf (((symbol-function 'y-or-n-p) #'always))
  (eglot-rename "scheme"))
(eventually "a task is renamed in the spec" (lambda () (string-match-p "task scheme" (buffer-string))))
(with-current-buffer (find-file-noselect (expand-file-name "prompts/coder.md" (getenv "WORKSPACE")))
  (eventually "and in a prompt" (lambda () (string-match-p "<<output:scheme" (buffer-string)))))
(eventually "and all is well there" #'right)

;; Formatting.
(goto-char (point-min))
(search-forward "task scheme")
(beginning-of-line)
(insert "   ")
(eglot-format-buffer)
(eventually "formatting puts the line back" (lambda () (string-match-p "^    task scheme" (buffer-string))))

(let ((server (eglot-current-server)))
  (eglot-shutdown server nil 10)
  (eventually "the server ends" (lambda () (not (jsonrpc-running-p server)))))
;;; emacs.el ends here
