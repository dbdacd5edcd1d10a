//! The keys of `swarmc top`: what each does, and the lines of the screen for help.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Steps,
    Team,
    Plan,
    Failed,
    Waiting,
    Filter,
    Open,
    Pane,
    Asks,
    Help,
    Back,
    Leave,
    Resume,
    /// Of a run that is over: a record back, one forward, or all of them one after the other.
    Earlier,
    Later,
    Play,
    Copy,
    Pager,
    Save,
    /// Whether clicks and the wheel count.
    Mouse,
    Approve,
    Interrupt,
    Suspend,
    /// A character in a text field, or the number of an answer.
    Char(char),
    Erase,
}

/// A line of the help: the keys, and what they do.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("↑ ↓ j k", "select a step, or scroll"),
    ("PgUp PgDn g G", "a page, the first, the last"),
    ("1 2 3", "steps; the team of the selected swarm; its plan"),
    ("Enter", "the log on the whole screen, and back"),
    ("Tab", "the other pane, where there is room for one"),
    ("f w", "only failed steps; only steps that wait or work"),
    ("/", "only steps whose names contain a text"),
    ("!", "what waits for an answer"),
    ("y o s", "copy the end of the log; open the log in $PAGER; save it here"),
    ("r", "go on with a run that no process runs"),
    ("a r", "in a plan: ask the coordinator to approve or reject a proposal"),
    ("M", "clicks select, the wheel scrolls; again: the terminal selects text"),
    (", . space", "how a run that is over went: back, forward, play"),
    ("Esc", "back; in the list, follow the step that is at work"),
    ("q", "leave: the run goes on"),
    ("Ctrl-C", "stop the run, or leave"),
    ("?", "these keys"),
];

/// What was pressed; `typing` says that a text field takes characters.
pub(crate) fn read_key(event: KeyEvent, typing: bool) -> Option<Key> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return match event.code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            KeyCode::Char('z') => Some(Key::Suspend),
            _ => None,
        };
    }
    Some(match event.code {
        KeyCode::Char(sign) if typing => Key::Char(sign),
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Key::First,
        KeyCode::End | KeyCode::Char('G') => Key::Last,
        KeyCode::Char('1') => Key::Steps,
        KeyCode::Char('2') => Key::Team,
        KeyCode::Char('3') => Key::Plan,
        KeyCode::Char('f') => Key::Failed,
        KeyCode::Char('w') => Key::Waiting,
        KeyCode::Char('/') => Key::Filter,
        KeyCode::Enter => Key::Open,
        KeyCode::Tab => Key::Pane,
        KeyCode::Char('!') => Key::Asks,
        KeyCode::Char('?') => Key::Help,
        KeyCode::Esc => Key::Back,
        KeyCode::Char('q') => Key::Leave,
        KeyCode::Char('r') => Key::Resume,
        KeyCode::Char('y') => Key::Copy,
        KeyCode::Char('o') => Key::Pager,
        KeyCode::Char('s') => Key::Save,
        KeyCode::Char('M') => Key::Mouse,
        KeyCode::Char('a') => Key::Approve,
        KeyCode::Char(',') => Key::Earlier,
        KeyCode::Char('.') => Key::Later,
        KeyCode::Char(' ') => Key::Play,
        KeyCode::Backspace => Key::Erase,
        KeyCode::Char(sign) => Key::Char(sign),
        _ => return None,
    })
}
