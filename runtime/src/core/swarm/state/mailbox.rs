//! Messages that wait for an agent.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::types::event::Content;
use crate::types::swarm::{MessageType, SUPERVISOR};

/// The messages that wait for one agent of a team at most, as far as those to a channel or to everybody are left out
/// for it: a thousand agents that write to everybody would else fill the memory.
pub(crate) const WAITING: usize = 200;

/// The messages that are left out at once.
const ROOM: usize = 50;

/// A message in a mailbox.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct QueuedMessage {
    pub(crate) seq: u64,
    pub(crate) from: Arc<str>,
    pub(crate) kind: MessageType,
    pub(crate) payload: Content,
    /// When it was sent.
    pub(crate) at: u64,
    /// Whether a person wrote it.
    pub(crate) person: bool,
    /// Whether it went to a channel, or to everybody: it wakes no agent of a team.
    pub(crate) posted: bool,
    /// Of how many messages that were left out it tells.
    pub(crate) left_out: u32,
}

impl QueuedMessage {
    /// Whether it is too old to be read. Agents always read messages of people.
    pub(crate) fn is_expired(&self, ttl_ms: u64, now: u64) -> bool {
        !self.person && self.at.saturating_add(ttl_ms) <= now
    }
}

/// Adds a message that went to a channel, or to everybody. In a full mailbox the oldest of those make room; one of them
/// then tells how many are gone.
pub(crate) fn add_posted(mailbox: &mut VecDeque<QueuedMessage>, message: QueuedMessage) {
    if mailbox.len() >= WAITING {
        leave_out(mailbox);
    }
    mailbox.push_back(message);
}

/// Leaves several out at once, so that the next ones cost nothing.
fn leave_out(mailbox: &mut VecDeque<QueuedMessage>) {
    let (mut gone, mut room, mut note) = (0, ROOM, None);
    let mut place = 0;
    mailbox.retain(|known| {
        let goes = known.posted && room > 0;
        if goes {
            room -= 1;
            gone += known.left_out.max(1);
        }
        // The first of them stays, as the one that tells.
        let stays = !goes || note.is_none();
        if goes && note.is_none() {
            note = Some(place);
        }
        place += usize::from(stays);
        stays
    });
    if let Some(note) = note.and_then(|place| mailbox.get_mut(place)) {
        note.left_out = gone;
        (note.from, note.kind) = (SUPERVISOR.into(), MessageType::Info);
        let text = format!("{gone} older messages to channels or to all were left out");
        note.payload = Content::Text(json!({ "message": text }).to_string());
    }
}

/// Takes the messages out up to the one of this number: `count` of them are read, and those before had expired.
pub(crate) fn take_read(mailbox: &mut VecDeque<QueuedMessage>, number: u64, count: u64) -> Vec<QueuedMessage> {
    let upto = mailbox.iter().take_while(|message| message.seq <= number).count();
    let expired = upto.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    mailbox.drain(..upto).skip(expired).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64, posted: bool) -> QueuedMessage {
        let payload = Content::Text(format!("{{\"message\":\"{seq}\"}}"));
        let (from, kind) = (Arc::from("a"), MessageType::Info);
        QueuedMessage { seq, from, kind, payload, at: 0, person: false, posted, left_out: 0 }
    }

    #[test]
    fn a_full_mailbox_leaves_the_oldest_posts_out_and_says_how_many() {
        let mut mailbox = VecDeque::new();
        mailbox.push_back(message(1, false));
        (2..=1_000).for_each(|seq| add_posted(&mut mailbox, message(seq, true)));
        assert!(mailbox.len() <= WAITING + 1, "{}", mailbox.len());
        assert_eq!((mailbox[0].seq, mailbox[1].seq), (1, 2), "what was written to the agent alone stays");
        let note = &mailbox[1];
        assert_eq!(note.left_out as usize + mailbox.len(), 1_001, "each is there or counted");
        let says = format!("{} older messages", note.left_out);
        assert!(matches!(&note.payload, Content::Text(text) if text.contains(&says)), "{note:?}");
        assert_eq!(mailbox.back().map(|last| last.seq), Some(1_000));
    }

    #[test]
    fn a_mailbox_of_messages_to_one_agent_loses_none() {
        let mut mailbox: VecDeque<QueuedMessage> = (1..=300).map(|seq| message(seq, false)).collect();
        add_posted(&mut mailbox, message(301, true));
        assert_eq!(mailbox.len(), 301);
    }

    #[test]
    fn what_is_read_is_counted_by_messages_and_not_by_their_numbers() {
        let box_of = |seqs: &[u64]| seqs.iter().map(|&seq| message(seq, true)).collect::<VecDeque<_>>();
        for (seqs, number, count, read, left) in [
            (&[1, 2, 3][..], 2, 2, &[1, 2][..], 1),
            // The first had expired.
            (&[1, 2, 3], 3, 2, &[2, 3], 0),
            // Others were left out in between.
            (&[1, 8, 9], 9, 3, &[1, 8, 9], 0),
            (&[4, 5], 3, 1, &[], 2),
        ] {
            let mut mailbox = box_of(seqs);
            let taken: Vec<u64> = take_read(&mut mailbox, number, count).iter().map(|it| it.seq).collect();
            assert_eq!((&taken[..], mailbox.len()), (read, left), "{seqs:?}");
        }
    }
}
