//! The finite multi-order context model (section 2.1, Figure 2): every pattern of up to `order` events, with how often it
//! was seen.
//!
//! It is the reference for tests of the other models and nothing else: its size is bounded only by a limit of nodes. At the limit new
//! patterns are not learnt.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::contexts::Bounded;
use super::{Context, Model, Prediction, Symbol};

#[derive(Clone, Debug)]
struct Node {
    symbol: Symbol,
    count: u32,
    /// The children, the last seen first.
    children: Vec<usize>,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Trie {
    nodes: Vec<Node>,
    roots: FxHashMap<Symbol, usize>,
    order: usize,
    limit: usize,
    places: Bounded<Context, Places>,
}

/// The nodes of the patterns that end with a context's last event, the longest first.
#[derive(Clone, Debug, Default)]
struct Places {
    nodes: VecDeque<usize>,
    /// True if that event was counted.
    counted: bool,
}

impl Trie {
    /// A trie for patterns of up to `order` events, with limits of nodes and contexts.
    pub fn new(order: usize, nodes: usize, contexts: usize) -> Self {
        Self {
            nodes: Vec::new(),
            roots: FxHashMap::default(),
            order: order.max(1),
            limit: nodes,
            places: Bounded::new(contexts),
        }
    }

    /// Number of occurrences of a pattern.
    pub fn count(&self, pattern: &[Symbol]) -> u32 {
        let Some((first, rest)) = pattern.split_first() else {
            return 0;
        };
        let mut at = self.roots.get(first).copied();
        for symbol in rest {
            at = at.and_then(|at| self.child(at, *symbol));
        }
        at.map_or(0, |at| self.nodes[at].count)
    }

    fn child(&self, node: usize, symbol: Symbol) -> Option<usize> {
        let mut children = self.nodes[node].children.iter();
        children
            .find(|child| self.nodes[**child].symbol == symbol)
            .copied()
    }

    fn make(&mut self, symbol: Symbol) -> Option<usize> {
        if self.nodes.len() >= self.limit {
            return None;
        }
        self.nodes.push(Node {
            symbol,
            count: 0,
            children: Vec::new(),
        });
        Some(self.nodes.len() - 1)
    }

    /// The child of this symbol, seen once more.
    fn visit(&mut self, node: usize, symbol: Symbol, learn: bool) -> Option<usize> {
        let child = match self.child(node, symbol) {
            Some(child) if !learn => return Some(child),
            None if !learn => return None,
            Some(child) => child,
            None => self.make(symbol)?,
        };
        let children = &mut self.nodes[node].children;
        children.retain(|other| *other != child);
        children.insert(0, child);
        self.nodes[child].count += 1;
        Some(child)
    }
}

impl Model for Trie {
    fn see(&mut self, context: Context, symbol: Symbol, learn: bool) {
        let mut places = self.places.remove(context).unwrap_or_default().nodes;
        if places.len() == self.order {
            places.pop_front();
        }
        let mut moved = VecDeque::with_capacity(self.order);
        let known = places.iter();
        moved.extend(known.filter_map(|node| self.visit(*node, symbol, learn)));
        let root = match self.roots.get(&symbol) {
            Some(root) => Some(*root),
            None if learn => self.make(symbol),
            None => None,
        };
        if let Some(root) = root {
            self.roots.insert(symbol, root);
            self.nodes[root].count += u32::from(learn);
            moved.push_back(root);
        }
        let places = Places {
            nodes: moved,
            counted: learn,
        };
        self.places.insert(context, places, |_, _| {});
    }

    fn predict(&self, context: Context, threshold: f64, out: &mut Vec<Prediction>) {
        out.clear();
        let Some(places) = self.places.get(context) else {
            return;
        };
        for node in &places.nodes {
            let node = &self.nodes[*node];
            // The visit that this context is in the middle of has no successor yet.
            let before = f64::from(node.count.saturating_sub(places.counted.into()));
            let mut children = node.children.clone();
            children.sort_by_key(|child| std::cmp::Reverse(self.nodes[*child].count));
            for child in children {
                let child = &self.nodes[child];
                let likelihood = (f64::from(child.count) / before).min(1.0);
                let known = out.iter().any(|one| one.symbol == child.symbol);
                if likelihood >= threshold && !known {
                    out.push(Prediction {
                        symbol: child.symbol,
                        likelihood,
                        ahead: 1,
                    });
                }
            }
        }
    }

    fn end(&mut self, context: Context) {
        self.places.remove(context);
    }

    fn end_all(&mut self) {
        self.places.clear();
    }

    fn bytes(&self) -> usize {
        self.nodes.len() * (size_of::<Node>() + size_of::<usize>())
            + self.places.len() * self.order * size_of::<usize>()
    }
}
