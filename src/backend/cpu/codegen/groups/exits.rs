//! How a function that is all of its unit takes the lanes that wait there, and sends them on.

use crate::backend::generator::{Exit, Route, Writer};
use crate::unit::UnitId;

/// Return blocks up to which each address is compared with all of them; beyond, lanes go one address after the other.
const MOST_COMPARED: usize = 8;

/// The units that a function sends lanes to. The lanes of a word are collected in `to0`, `to1`, …, and counted in `n0`, ….
#[derive(Default)]
pub(super) struct Exits {
    units: Vec<UnitId>,
    /// Whether lanes may be done.
    ends: bool,
    /// Whether it calls a function.
    calls: bool,
}

impl Exits {
    pub(super) fn of(route: &Route<'_>) -> Self {
        let unit = |block| route.units[block];
        match route.exit {
            Exit::Jump(block) => Self { units: vec![unit(block)], ..Self::default() },
            Exit::Branch(yes, no) => Self { units: vec![unit(yes), unit(no)], ..Self::default() },
            Exit::Call(target, ..) => Self { units: vec![unit(target)], calls: true, ..Self::default() },
            Exit::Return => {
                let compared = if compares(route) { route.returns } else { &[] };
                Self { units: compared.iter().map(|block| unit(*block)).collect(), ends: true, calls: false }
            }
            Exit::Halt => Self { ends: true, ..Self::default() },
        }
    }

    /// The loop over the groups of the lanes that wait.
    pub(super) fn begin(&self, route: &Route<'_>, w: &mut impl FnMut(String)) {
        w("    const int64_t words = (width + 63) / 64;".to_owned());
        w("    uint64_t *const waiting = c->waiting;".to_owned());
        let unit = route.unit.0;
        w(format!("    uint64_t *const mine = waiting + {unit} * words;"));
        w(format!("    ab_leave(c, {unit});"));
        for to in 0..self.units.len() {
            w(format!("    uint32_t n{to} = 0;"));
        }
        if self.calls {
            w("    H top = h_none(); uint64_t called = 0;".to_owned());
        }
        w("    for (int64_t word = 0; word < words; word++) {".to_owned());
        w("    uint64_t left = mine[word];".to_owned());
        w("    if (!left) continue;".to_owned());
        w("    mine[word] = 0;".to_owned());
        for to in 0..self.units.len() {
            w(format!("    uint64_t to{to} = 0;"));
        }
        if self.ends {
            w("    uint64_t gone = 0;".to_owned());
        }
        w("    for (int64_t at = word * 64; left; at += LANES, left >>= LANES) {".to_owned());
        w("        unsigned bits = (unsigned)left & ((1u << LANES) - 1);".to_owned());
    }

    pub(super) fn end(&self, w: &mut impl FnMut(String)) {
        for (to, unit) in self.units.iter().enumerate() {
            w(format!("    waiting[{} * words + word] |= to{to};", unit.0));
            w(format!("    n{to} += (uint32_t)__builtin_popcountll(to{to});"));
        }
        if self.ends {
            w("    c->done[word] |= gone;".to_owned());
            w("    c->finished += __builtin_popcountll(gone);".to_owned());
        }
        w("    }".to_owned());
        for (to, unit) in self.units.iter().enumerate() {
            w(format!("    ab_arrive(c, {}, n{to});", unit.0));
        }
        if self.calls {
            w("    ab_pushed(c->returns, top, called);".to_owned());
        }
    }
}

/// Whether a return address is compared with all return blocks.
fn compares(route: &Route<'_>) -> bool {
    route.returns.len() <= MOST_COMPARED
}

/// The lanes of the group that did not trap go where the end of the block says.
pub(super) fn send(route: &Route<'_>, text: &mut Writer<'_>) {
    match route.exit {
        Exit::Jump(_) => text.line("to0 |= ab_word(b_bits(m), at);"),
        Exit::Branch(..) => {
            text.line("to0 |= ab_word(b_bits(b_and(m, went)), at);");
            text.line("to1 |= ab_word(b_bits(b_andnot(m, went)), at);");
        }
        Exit::Call(_, ret, _) => {
            let site = text.signature.sites.len();
            text.line("const unsigned deep = h_at_least(h_load(c->returns->heights + at), c->deepest) & b_bits(m);");
            text.line(format!("if (AB_RARE(deep)) m = ab_trap(c, at, m, b_from_bits(deep), {site});"));
            text.line("if (AB_RARE(b_none(m))) continue;");
            text.line(format!("top = h_max(top, ab_put_address(c, at, m, {}));", ret.0));
            text.line("called += (unsigned)__builtin_popcount(b_bits(m));");
            text.line("to0 |= ab_word(b_bits(m), at);");
        }
        Exit::Return => {
            text.line("H addresses;");
            text.line("m = ab_return(c, at, m, &addresses, &gone);");
            if compares(route) {
                for (to, block) in route.returns.iter().enumerate() {
                    let back = format!("h_equal(addresses, {}) & b_bits(m)", block.0);
                    text.line(format!("to{to} |= ab_word({back}, at);"));
                }
            } else {
                return_one_by_one(route, text);
            }
        }
        Exit::Halt => text.line("gone |= ab_word(b_bits(m), at);"),
    }
}

/// As many turns as there are addresses in the group.
fn return_one_by_one(route: &Route<'_>, text: &mut Writer<'_>) {
    let most = route.returns.iter().map(|b| b.0 as usize + 1).max().unwrap_or(0);
    let mut units = vec![0; most];
    route.returns.iter().for_each(|b| units[b.0 as usize] = route.units[*b].0);
    let units: Vec<String> = units.iter().map(u32::to_string).collect();
    text.line(format!("static const uint32_t units[] = {{{}}};", units.join(", ")));
    text.line("uint32_t blocks[LANES];");
    text.line("h_store(blocks, addresses);");
    text.open("for (unsigned rest = b_bits(m); rest;) {");
    text.line("const uint32_t block = blocks[lanes_lowest(rest)];");
    text.line("const unsigned same = h_equal(addresses, block) & rest;");
    text.line("rest &= ~same;");
    text.line("waiting[units[block] * words + word] |= ab_word(same, at);");
    text.line("ab_arrive(c, units[block], (uint32_t)__builtin_popcount(same));");
    text.close();
}
