//! The words that tell what a full stop means: abbreviations, words that open sentences, words around ordinals.
//!
//! All entries are in small letters and without their last stop. A word that is missing here costs one wrong cut or
//! one missed cut; a wrong word costs one wherever it stands, so common words (`in.`, `am.`, `sun.`) are left out.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// What an abbreviation says about the stop behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stands before a name: never ends a sentence.
    Title,
    /// Announces what follows: never ends a sentence.
    LeadIn,
    /// Stands before a number.
    Counting,
    /// Often the last word of a sentence, often not.
    Ending,
    /// The last word of its sentence unless a figure or a name goes with it: `etc.`, `p.m.`
    Closing,
    /// A single letter.
    Initial,
    /// A unit behind its number.
    Unit,
}

const TITLES: &[&str] = &[
    "dr mr mrs messrs prof profs",
    // German, Dutch, French, Italian, Spanish, Portuguese
    "drs dipl dipl.-ing dipl.-kfm dr.-ing hl dhr mevr mme mmes mlle mlles sig sig.ra dott dott.ssa prof.ssa avv geom \
     sra srta dra dña profa exmo exma ilmo ilma",
    // Scandinavian, Russian, Ukrainian, Polish, Czech
    "skt проф акад ген доц им ул вул св ks św inż sv mudr judr phdr rndr",
    // Greek, Hindi and its neighbours
    "κ.κ κα κος δρ καθ डॉ प्रो पं स्व मो মো",
];

/// As [`TITLES`], two words of which the first is one itself, lest the second (Swedish `med`) count alone.
const PAIRED_TITLES: &[[&str; 2]] =
    &[["dr.", "med phil rer jur iur oec theol vet habil"], ["med.", "dent vet univ"], ["rer.", "nat pol oec"]];

/// As [`TITLES`], but only with a capital; in small letters they are units or common words.
const CAPITAL_TITLES: &[&str] = &[
    "ms mx rev fr hon pres gov sen rep gen col maj capt cpt cmdr lt sgt cpl adm supt insp hr frl ing mag mgr lic mm av ir eng gral bpk hj jl jln hz αγ",
];

const LEAD_INS: &[&str] = &[
    "e.g eg i.e ie cf vs viz approx incl excl esp p.s n.b",
    "aprox a.k.a aka",
    "z.b d.h bzw vgl sog ggf evtl inkl exkl zzgl u.a i.d.r m.a.w bspw insb bzgl z.t v.a",
    "p.ex p.ej par.ex c.-à-d c.à.d v.gr",
    "т.е т.к т.н напр π.χ λ.χ δηλ bijv d.w.z f.eks t.ex bl.a jf dvs esim např napr npr tzv tj tzw tzn m.in ún",
];

/// As [`LEAD_INS`], two words.
const PAIRED_LEAD_INS: &[[&str; 2]] = &[["ad", "es"], ["per", "es"], ["par", "ex"], ["por", "ex ej"]];

const COUNTING: &[&str] = &[
    "no nos nr nrs fig figs eq eqs sec sect ch chap vol vols art arts pp pg para par app tab op bk pt ln ver ex ed hrs",
    "jan feb mar apr jun jul aug sep sept oct nov dec okt dez mär janv févr avr juil déc ene abr ago",
    "ca circa fl est ext tel min max avg rs rte hwy rm apt",
    "abs bd kap ziff abb aufl núm nro pág págs cap",
    "mind mwst str séc sécs env av ap pagg blz ong",
    "ok kl kr kb ur zm godz rp",
    "стр гл рис табл п ст ок кв корп буд тел мин сек руб коп тыс млн млрд",
    "янв фев февр мар апр июн июл авг сен сент окт нояб ноя дек",
    "σελ αρ रु नं",
];

const ENDINGS: &[&str] = &[
    "inc ltd co corp bros jr sr esq al seq ibid ph.d b.sc m.sc d.phil ll.b ll.m ll.d ed.d psy.d",
    "dept univ assn natl govt ltda cie usw pl ul ing ft feat mrd chr jh",
    "ee uu ee.uu np nám osv m.fl",
    "др пр гг гор обл просп наб пл",
    // The names of Latin letters in Hindi and Tamil
    "बी सी डी पी टी वी एफ एच एल एम एन एस எம் எஸ் ஆர்",
];

/// What closes an enumeration or a time.
const CLOSINGS: &[&str] = &["etc ect ecc a.m p.m itd atd apod jne yms stb dll κλπ κτλ т.д т.п"];

/// As [`CLOSINGS`], two words.
const PAIRED_CLOSINGS: &[[&str; 2]] = &[["и", "др пр"]];

/// What follows a closing and belongs to it: `3 p.m. Eastern`, `5 p.m. Monday`, `etc. Inc`.
const AFTER_CLOSING: &str = "eastern pacific central mountain atlantic greenwich london local standard daylight inc ltd llc \
                             monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun \
                             january february march april may june july august september october november december \
                             jan feb mar apr jun jul aug sep sept oct nov dec";

/// What opens a sentence with a time.
const BEFORE_TIME: &str = "at by on around until before after since about from";

/// Units that are abbreviations or letters; only behind a number.
const UNITS: &str = "ft in lb lbs oz yd mi hr hrs min sec mm cm km kg mg ml hl hz Hz sv Sv lt m g l h s t \
                     A V W K N";

/// As [`ENDINGS`], but only with a capital: `Main St.`, `Boston, Mass.`
const CAPITAL_ENDINGS: &[&str] = &[
    "st ste mt ft ave blvd rd sq calif fla tex mass pa va ill ind conn colo wash minn wis tenn ala ark ariz okla ore oreg mich",
    "ky ga md mo neb nev",
    "mio sto sta tp ts gs ths pgs.ts pgs gs.ts pt",
];

/// Words that open sentences and are hardly ever the first word of a name or the next word of a phrase that an
/// abbreviation interrupts.
const STARTERS: &[&str] = &[
    // English
    "the a an this that these those it its he his she her they their we our you your i my there here in on at by from \
     for with within without during after before since until while when where who what which why how if although though \
     because as however moreover furthermore therefore thus hence then also both each every all many most some several \
     such one another other not no yes but and or so yet instead once unlike despite according today later only even to",
    // German
    "der die das den dem des er sie es ein eine einer eines wir ihr ihre sein seine dieser diese dieses im am zum zur \
     bei nach vor seit mit aus auf von für durch wenn als obwohl weil und aber oder auch doch jedoch außerdem dort hier \
     heute danach dabei damit dann man viele alle nur wie was wer wo",
    // French
    "le la les l un une des il elle ils elles ce cet cette ces on nous vous je son sa ses leur en dans au aux pour par \
     sur avec sans selon après avant depuis mais et ou car donc puis ainsi cependant toutefois aujourd",
    // Spanish, Portuguese, Italian
    "el los las una uno unos su sus ella ellos este esta estos estas ese esa esto eso hay con sin según después antes \
     desde pero y o como cuando donde también además entonces o os um uma ele ela eles elas seu sua no na em não com \
     mas il lo gli egli lei essi questo questa nel nella con ma anche",
    // Dutch, Scandinavian, Polish, Turkish
    "het een hij zij deze dit det den en ett et han hun hon de jest to on ona bu o ve",
    // Russian, Ukrainian
    "он она оно они это этот эта эти мы вы я его её их в во на с со к по из за от до при для о об и а но или же как \
     когда где если что так также там здесь затем потом после однако поэтому к у він вона воно вони це",
    // Greek
    "ο η το οι τα ο του της των ένα μια ένας αυτός αυτή αυτό και αλλά στο στη στην στον με για από όταν όμως",
    // Hebrew, Arabic, Persian, Urdu, Hindi
    "הוא היא זה הם כאן אבל هو هي هذا هذه كان كانت في من لكن این آن او در از اما یہ وہ اس यह वह इस और लेकिन",
];

/// Words of [`STARTERS`] that also stand between an initial and a surname: `M. Le Pen`, `R. De Niro`.
const PARTICLES: &str = "le la les de du des di da do el al los las van von den der ter lo y";

/// Words behind an ordinal number: months (with a capital) and the nouns that languages with dotted ordinals count.
const AFTER_ORDINAL: &[&str] = &[
    "januar jänner februar feber märz april mai juni juli august september oktober november dezember",
    "jan feb mär apr jun jul aug sep sept okt nov dez januari februari march may june july october december january february",
    "jahrhundert jahrhunderts jahrhunderte jahrhunderten jh jhd jahrtausend jahrtausends jahrestag weltkrieg weltkriegs \
     weltkrieges reich reichs platz auflage kapitel klasse stock etage bezirk liga bundesliga runde tag woche monat \
     jahr lebensjahr geburtstag mal band teil grad generation staffel etappe minute spieltag armee division legislaturperiode",
    "verdenskrig århundre århundrede dünya yüzyıl yüzyılda världskriget",
];

/// Words before an ordinal number in German.
const BEFORE_ORDINAL: &str = "der die das den dem des am im vom zum zur beim bis ab seit ins";

/// Words that a letter follows as a number does, so that it is no initial: `Vitamin C.`, `World War I.`
const BEFORE_LETTER: &str = "war vitamin group gruppe type typ class plan serie series grade hepatitis part appendix \
                             option phase point variant schedule annex exhibit";

/// Names that hold an exclamation mark.
const NAMES_WITH_MARK: &str = "yahoo jeopardy";

fn words(groups: &[&'static str]) -> impl Iterator<Item = &'static str> {
    groups.iter().flat_map(|group| group.split_whitespace())
}

type Table = HashMap<String, Kind>;

/// The abbreviations in any writing, and those that count only with a capital.
static ABBREVIATIONS: LazyLock<(Table, Table)> = LazyLock::new(|| {
    let plain = [
        (TITLES, Kind::Title),
        (LEAD_INS, Kind::LeadIn),
        (COUNTING, Kind::Counting),
        (ENDINGS, Kind::Ending),
        (CLOSINGS, Kind::Closing),
    ];
    let paired = [(PAIRED_TITLES, Kind::Title), (PAIRED_LEAD_INS, Kind::LeadIn), (PAIRED_CLOSINGS, Kind::Closing)];
    let capital = [(CAPITAL_TITLES, Kind::Title), (CAPITAL_ENDINGS, Kind::Ending)];
    let table = |rows: &[(&[&'static str], Kind)]| {
        rows.iter()
            .flat_map(|&(groups, kind)| words(groups).map(move |word| (word.to_owned(), kind)))
            .collect::<Table>()
    };
    let mut any = table(&plain);
    for (groups, kind) in paired {
        for &[first, seconds] in groups {
            any.extend(seconds.split(' ').map(|second| (format!("{first} {second}"), kind)));
        }
    }
    (any, table(&capital))
});

static UNIT_SET: LazyLock<HashSet<&'static str>> = LazyLock::new(|| UNITS.split_whitespace().collect());
static STARTER_SET: LazyLock<HashSet<&'static str>> = LazyLock::new(|| words(STARTERS).collect());
static AFTER_ORDINAL_SET: LazyLock<HashSet<&'static str>> = LazyLock::new(|| words(AFTER_ORDINAL).collect());

/// The kind of the abbreviation `word`; `capital` says that it may count as written with a capital.
pub(super) fn kind(word: &str, capital: bool) -> Option<Kind> {
    let (any, capitals) = &*ABBREVIATIONS;
    capitals
        .get(word)
        .filter(|_| capital)
        .or_else(|| any.get(word))
        .copied()
        // `Hauptstr. 5`
        .or_else(|| word.ends_with("str").then_some(Kind::Counting))
}

/// Is `word`, in its own writing, a unit where it stands behind a number?
pub(super) fn is_unit(word: &str) -> bool {
    UNIT_SET.contains(word)
}

/// Does `word` belong to the closing (`etc.`, `p.m.`) before it?
pub(super) fn follows_closing(word: &str) -> bool {
    AFTER_CLOSING.split_whitespace().any(|entry| entry == word)
}

/// Does a sentence that begins with `word` and a time go on behind it?
pub(super) fn precedes_time(word: &str) -> bool {
    BEFORE_TIME.split(' ').any(|entry| entry == word)
}

/// Does a sentence often open with `word`?
pub(super) fn starts_sentence(word: &str) -> bool {
    STARTER_SET.contains(word)
}

/// May `word` stand between an initial and a surname?
pub(super) fn is_particle(word: &str) -> bool {
    PARTICLES.split(' ').any(|particle| particle == word)
}

/// Does `word` stand behind an ordinal number or the day of a date?
pub(super) fn follows_ordinal(word: &str) -> bool {
    AFTER_ORDINAL_SET.contains(word)
}

/// Does `word` stand before an ordinal number?
pub(super) fn precedes_ordinal(word: &str) -> bool {
    BEFORE_ORDINAL.split(' ').any(|entry| entry == word)
}

/// Does a letter behind `word` stand for a number?
pub(super) fn precedes_letter(word: &str) -> bool {
    BEFORE_LETTER.split_whitespace().any(|entry| entry == word)
}

/// Is `word` a name that is written with an exclamation mark?
pub(super) fn is_name_with_mark(word: &str) -> bool {
    NAMES_WITH_MARK.split(' ').any(|name| name == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_abbreviation_has_one_meaning_and_stands_in_small_letters() {
        for tables in [&[TITLES, LEAD_INS, COUNTING, ENDINGS, CLOSINGS][..], &[CAPITAL_TITLES, CAPITAL_ENDINGS]] {
            let mut seen = HashSet::new();
            for word in tables.iter().flat_map(|table| words(table)) {
                assert!(seen.insert(word), "{word} stands there twice");
                assert_eq!(word, word.to_lowercase());
                assert!(!word.ends_with('.'), "{word}");
            }
        }
    }
}
