//! What is known of words: which carry little, which negate, which are opposites.
//!
//! All tables are plain lists, meant to be read and argued with.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::stem::stem;

/// Words that say little by themselves, in lower case, by language.
const LIGHT: [&str; 10] = [
    // English
    "a an the this that these those there here it its it's he him his she her hers they them their theirs we us our \
     you your i me my who whom whose which what when where how why is are was were be been being am do does did done \
     has have had having will would shall should can could may might must of in on at by for with from to into onto \
     upon about as than then and or but if so because while also both each such some any other one ones just very \
     too more most only own same between through during over under up down out off again further",
    // German
    "der die das den dem des ein eine einen einem einer eines und oder aber ist sind waren wird wurde wurden hat \
     haben im in am an auf aus bei mit von vom zu zum zur nach für über als auch sich er sie es ihr sein seine",
    // French
    "le la les l un une des du de d et ou mais est sont était étaient a ont au aux en dans par pour sur avec ce cette \
     ces il elle ils elles sa ses leur que qui qu se sa",
    // Spanish, Portuguese, Italian
    "el los las lo del al y o e es fue fueron ha han con por para su sus se que una uno como más os as um uma \
     do da dos das no na nos nas em foi é il gli i di che per nel della delle dei ed è",
    // Dutch
    "het een van en op te zijn werd voor aan bij ook",
    // Russian
    "и в во на с со к ко по из за от до у о об для это этот эта эти он она оно они его ее их был была было были есть \
     что как который которая которое которые а но или же бы то",
    // Greek
    "ο η το οι τα του της των τον την και σε στο στη στον στην με για απο ειναι ηταν που να θα ως",
    // Arabic, Persian
    "في من الی على علی عن مع هذا هذه ذلک التی الذی کان کانت هو هی هم ان او ثم قد و به در از با که را این آن است بود \
     شد می شده برای تا یک هم های ها بر یا آنها او اند باشد",
    // Hebrew
    "של את על עם הוא היא הם הן זה זאת זו היה היתה היו או גם כי אשר",
    // Hindi
    "का की के को में से है हैं था थी थे और या यह वह एक पर ने भी जो कि इस उस हो",
];

/// Words that open a sentence often and name nothing, in lower case; with those in -ly and the light ones.
const OPENERS: &str = "however therefore moreover furthermore additionally thus hence although though since yes overall \
     according despite given like unlike besides instead meanwhile today many several various people";

/// Words that turn a statement round, in lower case.
const NEGATORS: &str = "not never no none nobody nothing neither nor cannot without unable incapable \
     nicht kein keine keinen keinem keiner keines nie niemals pas jamais aucun aucune nunca jamas ningun ninguna tampoco \
     não nao niet geen nooit не нет ни никогда нельзя δεν μην οχι ποτε لا لم لن لیس لیست غیر نیست نبود نه هیچ \
     نشد نکرد ندارد نداشت نمی לא אין אינו אינה אינם नहीं न";

/// Opposites as stems' words: where a claim says one and the passage the other, the passage says something else.
const OPPOSITES: [(&str, &str); 63] = [
    ("increase", "decrease"),
    ("increase", "reduce"),
    ("raise", "lower"),
    ("rise", "fall"),
    ("higher", "lower"),
    ("high", "low"),
    ("more", "less"),
    ("more", "fewer"),
    ("most", "least"),
    ("before", "after"),
    ("first", "last"),
    ("first", "second"),
    ("north", "south"),
    ("northern", "southern"),
    ("east", "west"),
    ("eastern", "western"),
    ("win", "lose"),
    ("won", "lost"),
    ("alive", "dead"),
    ("male", "female"),
    ("man", "woman"),
    ("men", "women"),
    ("boy", "girl"),
    ("son", "daughter"),
    ("brother", "sister"),
    ("father", "mother"),
    ("husband", "wife"),
    ("actor", "actress"),
    ("largest", "smallest"),
    ("bigger", "smaller"),
    ("large", "small"),
    ("always", "never"),
    ("true", "false"),
    ("open", "close"),
    ("begin", "end"),
    ("start", "end"),
    ("positive", "negative"),
    ("left", "right"),
    ("buy", "sell"),
    ("accept", "reject"),
    ("best", "worst"),
    ("good", "bad"),
    ("early", "late"),
    ("earlier", "later"),
    ("hot", "cold"),
    ("old", "young"),
    ("strong", "weak"),
    ("major", "minor"),
    ("include", "exclude"),
    ("import", "export"),
    ("activate", "inhibit"),
    ("improve", "worsen"),
    ("grow", "shrink"),
    ("increase", "shrink"),
    ("increase", "fall"),
    ("decrease", "rise"),
    ("minimum", "maximum"),
    ("daily", "weekly"),
    ("daily", "monthly"),
    ("daily", "yearly"),
    ("weekly", "monthly"),
    ("weekly", "yearly"),
    ("monthly", "yearly"),
];

/// English months in order.
pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The name of month `number`, counted from 1; the last month for any other number.
pub(super) fn month(number: u32) -> &'static str {
    MONTHS.iter().zip(1..).find(|(_, n)| *n == number).map_or("december", |(name, _)| name)
}

/// The words of `lists`, folded as the texts are that they will meet.
fn folded(lists: &[&str]) -> HashSet<String> {
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.map(|word| super::text::fold(word).into_owned()).collect()
}

/// Does this folded, lower-case word carry little?
pub(in crate::judge) fn is_light(lower: &str) -> bool {
    static SET: LazyLock<HashSet<String>> = LazyLock::new(|| folded(&LIGHT));
    SET.contains(lower)
}

/// Does this folded, lower-case word turn a statement round?
pub(super) fn is_negator(lower: &str) -> bool {
    static SET: LazyLock<HashSet<String>> = LazyLock::new(|| folded(&[NEGATORS]));
    // Persian verbs take the negation as a prefix.
    lower.ends_with("n't") || lower.starts_with("نمی") || SET.contains(lower)
}

/// Is this folded, lower-case word a common opener that names nothing?
pub(super) fn is_opener(lower: &str) -> bool {
    static SET: LazyLock<HashSet<String>> = LazyLock::new(|| folded(&[OPENERS]));
    lower.ends_with("ly") || SET.contains(lower)
}

/// Does this pair of characters of a script without gaps begin with a word that points at something named elsewhere?
pub(super) fn is_dense_pronoun(pair: &str) -> bool {
    pair.starts_with(['그', '이', '저', '他', '她', '它', '这', '這', '那', '该', '此', '彼', 'そ', 'こ', 'あ', '私'])
}

/// Does a negation stand at the start of `run`, characters of a script without gaps?
pub(super) fn is_dense_negator(run: &[char]) -> bool {
    const SIGNS: [&[char]; 17] = [
        &['不'],
        &['没'],
        &['沒'],
        &['未'],
        &['无'],
        &['無'],
        &['な', 'い'],
        &['な', 'か', 'っ'],
        &['ま', 'せ', 'ん'],
        &['않'],
        &['못'],
        &['없'],
        &['아', '니'],
        &['아', '닌'],
        &['아', '닙'],
        &['ไ', 'ม', '\u{E48}'],
        &['ม', 'ิ', 'ไ', 'ด'],
    ];
    run == ['안'] || SIGNS.iter().any(|sign| run.starts_with(sign))
}

/// The opposites of the word with this stem, as stems.
pub(super) fn opposites(key: &str) -> &'static [String] {
    static MAP: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
        let mut map: HashMap<String, Vec<String>> = HashMap::new();
        for (a, b) in OPPOSITES.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]) {
            map.entry(stem(a)).or_default().push(stem(b));
        }
        map
    });
    MAP.get(key).map_or(&[], Vec::as_slice)
}

/// Is this lower-case word a title or another shortening that keeps its dot?
pub(super) fn is_title(lower: &str) -> bool {
    matches!(
        lower,
        "dr" | "mr"
            | "mrs"
            | "ms"
            | "st"
            | "prof"
            | "jr"
            | "sr"
            | "vs"
            | "no"
            | "fig"
            | "eg"
            | "ie"
            | "etc"
            | "inc"
            | "ltd"
            | "co"
            | "gen"
            | "col"
            | "sen"
            | "rep"
            | "gov"
            | "approx"
            | "cf"
            | "ca"
    )
}
