//! The record of a program, and the place of its next one.
//!
//! Data flow: command → [`Lookup`] (its places in the store) → [`Knowledge`] (its record, if there is one).

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use foreread_plan::format::{Outline, Place};
use foreread_plan::{Identity, Meta};
use foreread_sources::signature::Roles;
use foreread_store::Store;
use foreread_words::quoted;

use super::RunArgs;
use super::helper::Link;
use super::paths::{self, from_front};
use super::summary::Account;

/// The places where a record of the program may be.
pub(super) struct Lookup {
    pub(super) identity: Identity,
    /// The identity of the program where its record was made, if that was on another path.
    elsewhere: Option<Identity>,
    store: Option<Store>,
}

/// The record found of the program, and the place of the next one.
pub(super) struct Knowledge {
    pub(super) identity: Identity,
    pub(super) store: Option<Store>,
    pub(super) known: Option<(foreread_store::Found, Outline)>,
    pub(super) destination: Option<Place>,
}

impl Lookup {
    /// Find the place, and have the record there fetched. A store that cannot be used costs the speed-up and is said.
    pub(super) fn of(args: &RunArgs, account: &mut Account, link: &Link) -> Self {
        let name = args.command[0].to_string_lossy();
        link.doing(&format!("looking for {}", quoted(&name)));
        let mut identity = foreread_store::identity_of(&args.command);
        let map = args.map.reversed();
        let mut elsewhere = (!map.is_empty()).then(|| map.identity(&identity));
        link.doing("opening the folder of records");
        let mut store = account.note(Store::open_soon());
        if args.redact
            && let Some(open) = &store
        {
            // Without the key nothing is looked up, and nothing is kept.
            match account.note(open.redacted(&identity)) {
                Some(redacted) => {
                    identity = redacted;
                    elsewhere = elsewhere.and_then(|there| account.note(open.redacted(&there)));
                }
                None => store = None,
            }
        }
        if let Some(store) = &store
            && args.prefetch
        {
            store.announce(&identity);
        }
        Self {
            identity,
            elsewhere,
            store,
        }
    }

    /// Look the program up.
    pub(super) fn plan(self, args: &RunArgs, account: &mut Account, link: &Link) -> Knowledge {
        let Self {
            identity,
            elsewhere,
            store,
        } = self;
        if let Some(store) = &store {
            let folder = store.folder().display();
            link.doing(&format!("looking the program up in {folder}"));
        }
        let looked = match &store {
            Some(store) if args.prefetch => match &elsewhere {
                Some(elsewhere) => store.find_or(&identity, elsewhere),
                None => store.find(&identity),
            },
            Some(store) if args.record && args.output.is_none() => {
                store.look(&identity).map(|()| None)
            }
            _ => Ok(None),
        };
        let taken = looked.as_ref().is_err_and(foreread_store::is_newer);
        let known = account.note(looked.map_err(|why| {
            let stays = "; it is left as it is, and nothing is recorded";
            anyhow!("{why:#}{}", if taken { stays } else { "" })
        }));
        let known = known.flatten();
        if let Some(trouble) = known.as_ref().and_then(|(found, _)| found.trouble.clone()) {
            account.say(trouble);
        }
        let destination = match (&args.output, &store) {
            (Some(path), _) => {
                let refused = |why| anyhow!("{why:#}; nothing is recorded");
                link.doing(&format!("looking at {}", path.display()));
                let path = from_front(path, link.pid);
                account.note(paths::destination(&path).map_err(refused))
            }
            (None, Some(store)) if args.record && !taken => Some(store.place_for(&identity)),
            _ => None,
        };
        Knowledge {
            identity,
            store,
            known,
            destination,
        }
    }
}

impl Knowledge {
    /// The roles of the program's files, from its command line.
    pub(super) fn roles(&self) -> Roles {
        let Identity { argv, cwd, .. } = &self.identity;
        Roles::new(argv.iter().map(String::as_str), Path::new(cwd))
    }

    pub(super) fn meta(&self, began: SystemTime) -> Meta {
        Meta {
            identity: self.identity.clone(),
            recorded_at: began
                .duration_since(UNIX_EPOCH)
                .map_or(0, |age| age.as_secs()),
            writer: concat!("foreread ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
