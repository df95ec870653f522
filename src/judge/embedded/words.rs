//! What is known of words by themselves: which carry little, which negate, which sweep. How words stand to each other
//! is told in `relations`.
//!
//! All tables are plain lists, meant to be read and argued with.

use std::collections::HashMap;
use std::sync::LazyLock;

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
     according despite given like unlike besides instead meanwhile today many several various people early sadly oddly";

/// Words that turn a statement round, in lower case.
const NEGATORS: &str = "not never no none nobody nothing neither nor cannot without unable incapable \
     nicht kein keine keinen keinem keiner keines nie niemals pas jamais aucun aucune nunca jamas ningun ninguna tampoco \
     não nao niet geen nooit не нет ни никогда нельзя δεν μην οχι ποτε لا لم لن لیس لیست غیر نیست نبود نه هیچ \
     نشد نکرد ندارد نداشت نمی לא אין אינו אינה אינם नहीं न";

/// Words that say that something did not come about, in lower case.
const FAILING: &str = "fail fails failed failing decline declines declined declining refuse refuses refused refusing \
     lack lacks lacked lacking absent deny denies denied denying avoid avoids avoided avoiding reject rejects rejected \
     rejecting instead rather unlike except hardly rarely barely scarcely false untrue unlikely impossible stop stops \
     stopped cease ceases ceased cancel cancels cancelled canceled prevent prevents prevented preventing oppose opposes \
     opposed against";

/// Words that leave no exception, in lower case: a passage that does not say so says less. Those that negate are none
/// of them, since they are weighed as negators.
const SWEEPING: &str = "only solely entirely exclusively always every everyone everything sole entire completely \
     purely whole fully totally wholly alone \
     nur immer jeder jede jedes alle ausschließlich toujours seulement uniquement tous toutes chaque \
     siempre solo solamente todos todas cada sempre tutti \
     только всегда все каждый";

/// Words for who speaks or is spoken to, in lower case. A claim with one reports an opinion or a talk.
const SPEAKERS: &str = "i my me mine myself we our us you your ich mir mich mein meine wir uns \
     je moi mon nous yo mi nosotros я мне меня мой мы нас";

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

/// Words that tell by whom something was done, in lower case.
const AGENTS: &str = "by von vom durch par por da dal door";

/// What the tables say of a word; any number of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traits(u8);

impl Traits {
    /// It carries little.
    pub(super) const LIGHT: Self = Self(1);
    /// It turns a statement round.
    pub(super) const NEGATOR: Self = Self(1 << 1);
    /// It opens sentences often and names nothing.
    pub(super) const OPENER: Self = Self(1 << 2);
    /// It says that something did not come about.
    pub(super) const FAILING: Self = Self(1 << 3);
    /// It leaves no exception.
    pub(super) const SWEEPING: Self = Self(1 << 4);
    /// It stands for who speaks or is spoken to.
    pub(super) const SPEAKER: Self = Self(1 << 5);

    /// Are all of `wanted` among these?
    pub(super) fn has(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// It tells by whom something was done.
    pub(super) const AGENT: Self = Self(1 << 6);

    fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Does this folded, lower-case word carry little?
pub(in crate::judge) fn is_light(lower: &str) -> bool {
    traits(lower).has(Traits::LIGHT)
}

/// What is known of this folded, lower-case word.
pub(super) fn traits(lower: &str) -> Traits {
    static MAP: LazyLock<HashMap<String, Traits>> = LazyLock::new(|| {
        let lists = LIGHT.iter().map(|list| (*list, Traits::LIGHT)).chain([
            (NEGATORS, Traits::NEGATOR),
            (OPENERS, Traits::OPENER),
            (FAILING, Traits::FAILING),
            (SWEEPING, Traits::SWEEPING),
            (SPEAKERS, Traits::SPEAKER),
            (AGENTS, Traits::AGENT),
        ]);
        let mut map: HashMap<String, Traits> = HashMap::new();
        for (list, own) in lists {
            for word in list.split_whitespace() {
                // Folded as the texts are that it will meet.
                let mut folded = String::new();
                super::text::fold(word, |c| folded.push(c));
                map.entry(folded).or_default().join(own);
            }
        }
        map
    });
    let mut traits = MAP.get(lower).copied().unwrap_or_default();
    // Persian verbs take the negation as a prefix.
    if lower.ends_with("n't") || lower.starts_with("نمی") {
        traits.join(Traits::NEGATOR);
    }
    traits
}

/// Is this folded, lower-case word a common opener that names nothing?
pub(super) fn is_opener(lower: &str) -> bool {
    // Longer than `Italy`, `Emily` and `Kelly`.
    (lower.len() > 5 && lower.ends_with("ly") && lower != "sicily") || traits(lower).has(Traits::OPENER)
}

/// Does this pair of characters of a script without gaps begin with a word that points at something named elsewhere?
pub(super) fn is_dense_pronoun(pair: &[char]) -> bool {
    matches!(
        pair,
        [
            '그' | '이'
                | '저'
                | '他'
                | '她'
                | '它'
                | '这'
                | '這'
                | '那'
                | '该'
                | '此'
                | '彼'
                | 'そ'
                | 'こ'
                | 'あ'
                | '私',
            ..
        ]
    )
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
