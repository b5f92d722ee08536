//! The origins' own robots.txt files, brought to the sites that ask for them: who is due is asked in a thread of its
//! own, a few at a time, and what is heard is put into force or held back. No request waits for any of it.

mod fetch_job;
mod status_report;
mod thread;

pub use fetch_job::{Answer, Errand};
pub use thread::start;

use crate::clock::Moment;
use crate::durable::set_aside;
use crate::origin::robots::{Copy, FetchResult, FetchState, Kept, State, Store, Targets, Torn};
use crate::policy::compiled::SiteEntry;
use crate::policy::origin::OriginFile;
use crate::settings::OriginSettings;
use crate::sites::{
    DEFAULT_SITE, DefaultSite, KnownOrigins, OriginKnown, PATIENCE, Served, SiteManager, asked_by, is_no_policy,
};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Fetches at the same time.
const AT_ONCE: usize = 8;
/// The longest sleep: the clock may be set while nothing happens.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Sites that are gone whose copies are kept: beyond that the oldest go.
const MAX_LEFT: usize = 64;
/// The two clocks are read in whole seconds, and may be so many apart by that alone.
const ROUNDING: u64 = 1;

/// The copies of all sites, and when each is asked for next.
pub struct OriginRobots {
    live: Arc<SiteManager>,
    targets: Targets,
    store: Store,
    /// Which origin of the settings a site without a policy is for.
    default_sites: BTreeMap<String, usize>,
    sites: BTreeMap<String, Watched>,
    /// Copies from the state directory that no site has claimed yet, and those of sites that are gone and may come
    /// back: a volume that is not mounted for a moment costs no copy.
    kept: BTreeMap<String, Kept>,
    /// By how many seconds the clock on the wall is ahead of what was lived through.
    ahead: Option<i64>,
}

struct Watched {
    life: FetchState,
    /// The policy that it was last asked for: another one may let through what was held back.
    policy: Arc<str>,
    /// Whether there is no policy.
    no_policy: bool,
    /// Its hosts as patterns.
    hosts: Vec<String>,
    /// Whether the copy may be of another host than the one that is asked for next: its validators say nothing there.
    plainly: bool,
    asked: bool,
    told: Option<(State, Served, Option<String>)>,
}

impl Watched {
    fn kept(&self) -> Kept {
        let default_sites = self.no_policy.then(|| self.hosts.clone());
        Kept { life: self.life.clone(), default_sites, left_at: None }
    }
}

/// How well a copy fits what a site was compiled with: the same octets are the same copy, from wherever they came;
/// those from the same URL fit better, for two hosts may have files that are alike.
fn fits(copy: &Copy, file: &OriginFile) -> Option<bool> {
    (copy.bytes == *file.file.bytes()).then_some(copy.url == file.location)
}

/// What is known of what a site goes by: its own life if that is of it, else one of the others', else the copy alone. A
/// site that goes by a copy never has a life without one, or the next failure would be kept in the place of the copy.
/// The other way round a life with a copy is another host's where the site goes by none.
fn life_of(own: Option<&FetchState>, others: &[FetchState], entry: &SiteEntry, now: Timestamp) -> FetchState {
    let Some(file) = &entry.site.origin else {
        // It has waited for as long as the site has, which may be longer than we know of it.
        let over = entry.site.robots_txt.awaits_origin_until;
        let since = over.map_or(now, |over| Timestamp(over.0.saturating_sub(PATIENCE.as_secs() as i64)).min(now));
        return own.filter(|life| life.copy().is_none()).cloned().unwrap_or_else(|| FetchState::new(since));
    };
    let of = |life: &&FetchState, is_exact| life.copy().and_then(|copy| fits(copy, file)) == Some(is_exact);
    let each = || own.into_iter().chain(others);
    let life = each().find(|life| of(life, true)).or_else(|| each().find(|life| of(life, false)));
    life.cloned().unwrap_or_else(|| FetchState::going_on(file.location.clone(), file.file.bytes().clone(), now))
}

/// What the copies of a state directory tell sites at the start.
pub fn known(state: Option<&Path>, now: Timestamp) -> KnownOrigins {
    let known = |life: &FetchState| match life.copy() {
        Some(copy) => OriginKnown::Copy(Arc::new(OriginFile::new(copy.url.clone(), copy.bytes.clone()))),
        None => OriginKnown::AwaitedSince(life.wanted_since()),
    };
    let mut origins = KnownOrigins::default();
    let torn = |file: &Path, reason: &Torn| {
        tracing::warn!(file = %file.display(), %reason, "a copy of an origin's robots.txt cannot be understood: it is fetched again");
    };
    for (name, kept) in Store::new(state).load(now, torn) {
        if kept.life.state(PATIENCE, kept.life.wanted_since()) == State::HeldBack {
            origins.held_back.insert(name.clone(), kept.life.problem().unwrap_or_default());
        }
        origins.copies.insert(name.clone(), known(&kept.life));
        match kept.default_sites {
            Some(hosts) => origins.default_sites.push(DefaultSite { name, hosts }),
            // Written when there was no other.
            None if name == DEFAULT_SITE => origins.default_sites.push(DefaultSite::for_every_host()),
            None => {}
        }
    }
    origins
}

impl OriginRobots {
    /// For the sites that are live.
    pub fn new(
        live: Arc<SiteManager>,
        origins: &[OriginSettings],
        state: Option<&Path>,
        now: Timestamp,
    ) -> OriginRobots {
        let mut store = Store::new(state);
        // Whoever asked what is known has been told of the others.
        let kept = store.load(now, |file, reason| {
            if let Torn::Damaged(_) = reason {
                set_aside(file);
            }
        });
        let default_sites = DefaultSite::of(origins).into_iter().map(|without| without.name).zip(0..).collect();
        let (targets, sites) = (Targets::new(origins), BTreeMap::new());
        OriginRobots { live, targets, store, default_sites, sites, kept, ahead: None }
    }

    /// Who is to be asked for now. Each errand must be followed by [`answered`](OriginRobots::answered).
    pub fn due(&mut self, moment: Moment) -> Vec<Errand> {
        let now = moment.now;
        self.follow_clock(moment);
        self.follow_sites(now);
        let free = AT_ONCE.saturating_sub(self.sites.values().filter(|watched| watched.asked).count());
        let snapshot = self.live.snapshot();
        let mut due: Vec<(&String, &mut Watched)> =
            self.sites.iter_mut().filter(|(_, watched)| !watched.asked && watched.life.due() <= now).collect();
        due.sort_by_key(|(_, watched)| watched.life.due());
        let mut errands = Vec::new();
        for (name, watched) in due.into_iter().take(free) {
            let Some(entry) = snapshot.site_named(name).map(|site| &snapshot.sites()[site]) else { continue };
            watched.asked = true;
            let (etag, last_modified) = if watched.plainly { (None, None) } else { watched.life.validators() };
            let host = asked_by(&entry.site.policy);
            let own = self.default_sites.get(name).filter(|_| watched.no_policy);
            errands.push(Errand {
                site: name.clone(),
                target: match own {
                    Some(&place) => self.targets.target_of(place, host.as_deref()),
                    None => self.targets.target(host.as_deref()),
                },
                etag: etag.map(str::to_owned),
                last_modified: last_modified.map(str::to_owned),
                policy: entry.site.policy.clone(),
            });
        }
        errands
    }

    /// An errand is done. `jitter` is a number from 0 to 1.
    pub fn answered(&mut self, answer: Answer, moment: Moment, jitter: f64) {
        let now = moment.now;
        self.follow_clock(moment);
        let Some(watched) = self.sites.get_mut(&answer.site) else { return };
        watched.asked = false;
        // What another host has, that was asked because of another policy, says nothing here: asked again.
        let snapshot = self.live.snapshot();
        let policy = snapshot.site_named(&answer.site).map(|site| &snapshot.sites()[site].site.policy.source.text);
        if policy.is_none_or(|policy| *policy != answer.policy) {
            watched.life.ask_now(now);
            return;
        }
        // What could not be reached has said nothing about the copy.
        watched.plainly &= matches!(answer.heard, FetchResult::Unreachable(_));
        // In place of a file a page is garbage; where there never was one, it is what apps of one page answer to
        // everything.
        let has_file = watched.life.copy().is_some_and(|copy| copy.exists);
        let heard = match watched.no_policy || !has_file {
            true => answer.heard.as_crawlers_read_it(),
            false => answer.heard,
        };
        if let Some(copy) = watched.life.heard(heard, now, jitter) {
            let file = Arc::new(OriginFile::new(copy.url.clone(), copy.bytes.clone()));
            match self.live.origin_says(&answer.site, file, now) {
                Ok(()) => watched.life.taken(copy, now),
                Err(findings) => {
                    let why = findings.join("; ");
                    // Findings that name its line name it.
                    let is_named = why.contains(&copy.url);
                    watched.life.held_back(if is_named { why } else { format!("{}: {why}", copy.url) });
                }
            }
        }
        self.store.keep(&answer.site, &watched.kept());
        self.tell(now);
    }

    /// How long nothing is to be done, if nothing happens: no answer comes and no policy changes.
    pub fn rest(&self, now: Timestamp) -> Duration {
        if self.sites.values().filter(|watched| watched.asked).count() >= AT_ONCE {
            return LONGEST_WAIT;
        }
        let due = self.sites.values().filter(|watched| !watched.asked).map(|watched| watched.life.due()).min();
        // What is told of who waited in vain is told when the waiting is over.
        let patience = self.sites.values().filter(|watched| watched.life.copy().is_none());
        let patience =
            patience.map(|watched| watched.life.wanted_since().plus(PATIENCE)).filter(|over| *over > now).min();
        let due = due.into_iter().chain(patience).min();
        due.map_or(LONGEST_WAIT, |due| due.since(now)).min(LONGEST_WAIT)
    }

    /// Spans are those that were lived through, and the moments are told by the clock on the wall, for people and for
    /// the next start: where that was set, or the machine slept, they are told anew.
    fn follow_clock(&mut self, moment: Moment) {
        let ahead = moment.now.0.saturating_sub(i64::try_from(moment.lived.as_secs()).unwrap_or(i64::MAX));
        let by = ahead.saturating_sub(*self.ahead.get_or_insert(ahead));
        if by.unsigned_abs() <= ROUNDING {
            return;
        }
        self.ahead = Some(ahead);
        for (name, watched) in &mut self.sites {
            watched.life.clock_was_set(by, moment.now);
            self.store.keep(name, &watched.kept());
        }
        for (name, kept) in &mut self.kept {
            kept.clock_was_set(by, moment.now);
            self.store.keep(name, kept);
        }
        self.live.clock_was_set(by, moment.now);
    }

    /// Takes up sites that are new and lets go of those that are gone or do not ask any more.
    fn follow_sites(&mut self, now: Timestamp) {
        let snapshot = self.live.snapshot();
        let wanted: BTreeMap<&str, &SiteEntry> = snapshot
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.reads_origin())
            .map(|entry| (entry.site.name.as_str(), entry))
            .collect();
        // Who takes over hosts takes over the copy that is in use there, with what is known of it: it was compiled with
        // it.
        let lives: Vec<FetchState> = self
            .sites
            .values()
            .map(|watched| &watched.life)
            .chain(self.kept.values().map(|kept| &kept.life))
            .filter(|life| life.copy().is_some())
            .cloned()
            .collect();
        let is_gone = |name: &str, watched: &Watched| match wanted.get(name) {
            // A file that has the name of a site without a policy is another site.
            Some(entry) => watched.no_policy != is_no_policy(&entry.site.policy),
            None => true,
        };
        let gone: Vec<String> =
            self.sites.iter().filter(|(name, watched)| is_gone(name, watched)).map(|(name, _)| name.clone()).collect();
        // Their copies stay on the disk until whoever goes on with them has written them down.
        let mut left: Vec<String> = Vec::new();
        for name in gone {
            let Some(watched) = self.sites.remove(&name) else { continue };
            match snapshot.site_named(&name) {
                None if !watched.no_policy && watched.life.copy().is_some() => {
                    self.kept.insert(name, watched.kept());
                }
                _ => left.push(name),
            }
        }
        let longest = self.live.longest_held();
        for (name, kept) in &mut self.kept {
            if wanted.contains_key(name.as_str()) {
                continue;
            }
            // Who is there and asks for none has no use for it, nor has anybody for a failure.
            let may_return =
                snapshot.site_named(name).is_none() && kept.default_sites.is_none() && kept.life.copy().is_some();
            if !may_return || kept.left_at.is_some_and(|moment| now.since(moment) > longest) {
                left.push(name.clone());
            } else if kept.left_at.is_none() {
                kept.left_at = Some(now);
                self.store.keep(name, kept);
            }
        }
        let mut waiting: Vec<(Timestamp, &String)> =
            self.kept.iter().filter_map(|(name, kept)| Some((kept.left_at?, name))).collect();
        waiting.sort_unstable();
        left.extend(waiting.iter().rev().skip(MAX_LEFT).map(|(_, name)| (*name).clone()));
        left.retain(|name| !wanted.contains_key(name.as_str()) || !self.kept.contains_key(name));
        left.iter().for_each(|name| drop(self.kept.remove(name)));
        for (name, entry) in wanted {
            let policy = &entry.site.policy.source.text;
            match self.sites.get_mut(name) {
                Some(watched) if watched.policy == *policy => {}
                Some(watched) => {
                    watched.policy = policy.clone();
                    watched.plainly = true;
                    // It may be for another host now, and go by that one's copy, or by none.
                    let life = life_of(Some(&watched.life), &lives, entry, now);
                    if life != watched.life {
                        watched.life = life;
                        match watched.life.copy() {
                            Some(_) => self.store.keep(name, &watched.kept()),
                            None => self.store.forget(name),
                        }
                    }
                    watched.life.ask_now(now);
                }
                None => {
                    // A copy that is not in use is of another host, of a site that once had this name.
                    let kept = self.kept.remove(name);
                    let is_back = kept.as_ref().is_some_and(|kept| kept.left_at.is_some());
                    let kept = kept.map(|kept| kept.life);
                    let mut life = life_of(kept.as_ref(), &lives, entry, now);
                    let plainly = kept.as_ref() != Some(&life);
                    let is_of_another = kept.is_some() && plainly;
                    if is_back {
                        life.is_back();
                    }
                    life.ask_now(now);
                    let no_policy = is_no_policy(&entry.site.policy);
                    let hosts: Vec<String> =
                        entry.site.policy.hosts.iter().map(|host| host.value.to_string()).collect();
                    if let Some(host) = asked_by(&entry.site.policy).filter(|_| no_policy)
                        && (hosts.len() > 1 || hosts.iter().any(|host| host.starts_with('*')))
                    {
                        let hosts = hosts.join(", ");
                        tracing::warn!(
                            site = name,
                            %hosts,
                            %host,
                            "there is no policy: these hosts go by one robots.txt, the one of `host`; where they have others, write an origin or a policy for each"
                        );
                    }
                    let watched =
                        Watched { life, policy: policy.clone(), no_policy, hosts, plainly, asked: false, told: None };
                    match watched.life.copy() {
                        Some(_) if plainly || is_back => self.store.keep(name, &watched.kept()),
                        None if is_of_another || left.iter().any(|left| left == name) => self.store.forget(name),
                        Some(_) | None => {}
                    }
                    left.retain(|left| left != name);
                    self.sites.insert(name.to_owned(), watched);
                }
            }
        }
        left.iter().for_each(|name| self.store.forget(name));
        self.tell(now);
    }
}
