//! How words stand to each other: opposites, directions, and kinds that exclude each other.
//!
//! All tables are plain lists of English words, meant to be read and argued with, and met by their stems.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::stem;

/// Opposites: where a claim says one and the passage the other, the passage says something else.
const OPPOSITES: [(&str, &str); 161] = [
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
    ("success", "failure"),
    ("present", "absent"),
    ("presence", "absence"),
    ("agree", "disagree"),
    ("support", "oppose"),
    ("legal", "illegal"),
    ("possible", "impossible"),
    ("love", "hate"),
    ("rich", "poor"),
    ("new", "old"),
    ("easy", "difficult"),
    ("easy", "hard"),
    ("expensive", "cheap"),
    ("fast", "slow"),
    ("wide", "narrow"),
    ("deep", "shallow"),
    ("thick", "thin"),
    ("light", "heavy"),
    ("bright", "dark"),
    ("inside", "outside"),
    ("modern", "ancient"),
    ("permanent", "temporary"),
    ("voluntary", "mandatory"),
    ("optional", "mandatory"),
    ("simple", "complex"),
    ("common", "rare"),
    ("natural", "artificial"),
    ("active", "passive"),
    ("domestic", "foreign"),
    ("urban", "rural"),
    ("senior", "junior"),
    ("upper", "lower"),
    ("arrive", "depart"),
    ("appear", "disappear"),
    ("remember", "forget"),
    ("allow", "forbid"),
    ("allow", "prohibit"),
    ("allow", "ban"),
    ("attack", "defend"),
    ("marry", "divorce"),
    ("birth", "death"),
    ("victory", "defeat"),
    ("succeed", "fail"),
    ("survive", "die"),
    ("lend", "borrow"),
    ("hire", "fire"),
    ("join", "leave"),
    ("pass", "fail"),
    ("confirm", "deny"),
    ("innocent", "guilty"),
    ("safe", "dangerous"),
    ("healthy", "sick"),
    ("majority", "minority"),
    ("profit", "loss"),
    ("surplus", "deficit"),
    ("above", "below"),
    ("similar", "different"),
    ("same", "different"),
    ("accurate", "inaccurate"),
    ("sensitive", "insensitive"),
    ("dependent", "independent"),
    ("necessary", "unnecessary"),
    ("sufficient", "insufficient"),
    ("relevant", "irrelevant"),
    ("regular", "irregular"),
    ("stable", "unstable"),
    ("likely", "unlikely"),
    ("known", "unknown"),
    ("equal", "unequal"),
    ("happy", "unhappy"),
    ("friendly", "hostile"),
    ("approve", "reject"),
    ("advantage", "disadvantage"),
    ("ally", "enemy"),
    ("friend", "enemy"),
    ("long", "short"),
    ("tall", "short"),
    ("full", "empty"),
    ("wet", "dry"),
    ("clean", "dirty"),
    ("loud", "quiet"),
    ("ascend", "descend"),
    ("expand", "contract"),
    ("encourage", "discourage"),
    ("include", "omit"),
    ("visible", "invisible"),
    ("direct", "indirect"),
    ("formal", "informal"),
    ("mild", "severe"),
    ("acute", "chronic"),
    ("benign", "malignant"),
    ("top", "bottom"),
    ("initial", "final"),
    ("former", "current"),
    ("former", "latter"),
    ("underestimate", "overestimate"),
    ("underweight", "overweight"),
    ("inferior", "superior"),
    ("daily", "weekly"),
    ("daily", "monthly"),
    ("daily", "yearly"),
    ("weekly", "monthly"),
    ("weekly", "yearly"),
    ("monthly", "yearly"),
];

/// Words that say that there is, or comes to be, more of something; and that there is less.
const DIRECTIONS: [&str; 2] = [
    "increase raise rise higher high greater more elevate grow growth improve improvement enhance promote activate \
     activation upregulate upregulation induce boost expand gain longer larger bigger stronger faster better above \
     exceed surpass accelerate strengthen climb soar widen upward augment amplify stimulate heighten double triple \
     positive",
    "decrease reduce reduction lower low less fewer decline fall drop inhibit inhibition suppress suppression \
     downregulate downregulation impair diminish shrink shorter smaller weaker slower worse below attenuate block \
     prevent protect deactivate inactivate loss lose limit restrict weaken cut slow narrow downward negative deplete \
     abolish halve deteriorate worsen",
];

/// Kinds of which a thing is rarely two at once: where a claim says one and the passage another, it says something else.
const RIVALS: [&str; 48] = [
    "film book song series album play video game magazine novel poem opera musical painting documentary sitcom newspaper \
     podcast",
    "city county country state town village province island continent river lake mountain ocean region district \
     municipality",
    "american british canadian australian french german italian spanish russian chinese japanese indian irish scottish \
     english mexican brazilian dutch swedish norwegian danish polish greek turkish korean african european asian",
    "america england france germany italy spain russia china japan india ireland scotland canada australia mexico brazil",
    "king queen prince princess emperor president",
    "first second third fourth fifth sixth seventh eighth ninth tenth",
    "january february march april may june july august september october november december",
    "monday tuesday wednesday thursday friday saturday sunday",
    "spring summer autumn winter",
    "north south east west",
    "northern southern eastern western",
    "red blue green yellow black white orange purple brown pink grey gray",
    "basketball football baseball soccer tennis hockey cricket golf rugby volleyball softball boxing wrestling",
    "comedy drama horror thriller romance western fantasy documentary",
    "actor singer writer politician lawyer doctor teacher engineer scientist painter architect dancer composer director \
     producer athlete journalist chef soldier priest",
    "father mother son daughter brother sister uncle aunt cousin husband wife grandfather grandmother nephew niece",
    "man woman boy girl",
    "male female",
    "he she",
    "his her",
    "dog cat horse cow pig sheep bird fish",
    "gold silver bronze",
    "guitar piano drum bass violin trumpet",
    "daily weekly monthly yearly hourly quarterly annual",
    "day week month year decade century hour minute second",
    "kilometer mile meter foot inch centimeter yard kilometre metre",
    "million billion thousand trillion hundred",
    "dollar euro pound yen rupee",
    "christian muslim jewish hindu buddhist catholic protestant",
    "university school college academy",
    "plant animal fungus bacteria virus",
    "mammal reptile amphibian bird fish insect",
    "primary secondary tertiary",
    "bachelor master doctorate",
    "morning afternoon evening night",
    "democrat republican democratic",
    "written directed produced",
    "left right",
    "solid liquid gas",
    "breakfast lunch dinner",
    "single double triple",
    "past future present",
    "before after during",
    "army navy",
    "all some few most",
    "public private",
    "internal external",
    "local national international global",
];

/// Where a direction leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To more.
    More,
    /// To less.
    Less,
}

impl Direction {
    /// The stems of all words that lead there.
    pub(super) fn stems(self) -> &'static [String] {
        static STEMS: LazyLock<[Vec<String>; 2]> = LazyLock::new(|| DIRECTIONS.map(stems));
        let [more, less] = &*STEMS;
        match self {
            Self::More => more,
            Self::Less => less,
        }
    }

    /// The other one.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::More => Self::Less,
            Self::Less => Self::More,
        }
    }
}

/// What is known of the word with this stem. `None` where nothing is.
pub(super) fn relations(stem: &str) -> Option<&'static Relations> {
    static MAP: LazyLock<HashMap<String, Relations>> = LazyLock::new(|| {
        let mut map: HashMap<String, Relations> = HashMap::new();
        for (a, b) in OPPOSITES.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]) {
            map.entry(stem_of(a)).or_default().opposites.push(stem_of(b));
        }
        for direction in [Direction::More, Direction::Less] {
            for word in direction.stems() {
                map.entry(word.clone()).or_default().direction = Some(direction);
            }
        }
        for kind in RIVALS {
            let words = stems(kind);
            for word in &words {
                let others = words.iter().filter(|other| *other != word).cloned();
                map.entry(word.clone()).or_default().rivals.extend(others);
            }
        }
        map
    });
    MAP.get(stem)
}

/// What a word's relations are, as stems.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// Words that say the opposite.
    pub(super) opposites: Vec<String>,
    /// Words for other things of its kind.
    pub(super) rivals: Vec<String>,
    /// Does it say more, or less?
    pub(super) direction: Option<Direction>,
}

fn stems(words: &str) -> Vec<String> {
    words.split_whitespace().map(stem_of).collect()
}

fn stem_of(word: &str) -> String {
    let mut key = String::new();
    stem::stem(word, &mut key);
    key
}
