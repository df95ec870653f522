//! The judge from its front: what it must say, and what must hold for any text.

use proptest::prelude::*;

use super::{assess, decide};
use crate::recall::judge::{Question, Verdict};
use crate::recall::{Stop, Stopped, Units};

fn question(contexts: &[&str], claims: &[&str]) -> Question {
    Question {
        user_input: String::new(),
        contexts: contexts.iter().map(|&text| text.to_owned()).collect(),
        claims: Units::new(claims.iter().map(|&text| text.to_owned()).collect()).unwrap(),
    }
}

pub(super) fn verdict(claim: &str, contexts: &[&str]) -> Verdict {
    decide(&question(contexts, &[claim]), &Stop::default()).unwrap().remove(0)
}

#[track_caller]
fn carried(claim: &str, context: &str) {
    let verdict = verdict(claim, &[context]);
    assert!(verdict.attributed, "refused: {claim} | {context} | {}", verdict.reason);
    assert!(context.contains(&verdict.evidence[0].quote));
}

#[track_caller]
fn refused(claim: &str, context: &str, reason: &str) {
    let verdict = verdict(claim, &[context]);
    assert!(!verdict.attributed, "attributed: {claim} | {context}");
    assert_eq!(verdict.reason, reason);
    assert!(verdict.evidence.is_empty());
}

#[track_caller]
fn both(claim: &str, yes: &str, no: &str) {
    carried(claim, yes);
    assert!(!verdict(claim, &[no]).attributed, "attributed: {claim} | {no}");
}

#[test]
fn the_same_topic_is_no_support() {
    let claim = "The Eiffel Tower is located in Paris.";
    carried(claim, "The Eiffel Tower is located in Paris, on the Champ de Mars.");
    carried(claim, "The Eiffel Tower stands in Paris, France.");
    refused(claim, "Paris is the capital of France.", "the contexts say nothing of: Eiffel Tower, located");
}

#[test]
fn numbers_must_be_given() {
    carried("It opened in 1889.", "The tower opened to the public on 31 March 1889.");
    refused(
        "It opened in 1889.",
        "It opened in 1887 after two years of building.",
        "1889 does not occur in the passage",
    );
    both(
        "The bridge is 1,234.5 metres long.",
        "The bridge is 1234.5 metres long.",
        "The bridge is 1235.4 metres long.",
    );
    both(
        "Twelve members sit on the board.",
        "The board has 12 members who sit on it.",
        "The board has 11 members who sit on it.",
    );
    both("Sales rose by 12 %.", "Sales rose by 12 percent last year.", "Sales rose by 21 percent last year.");
    both(
        "Einstein was born on March 14, 1879.",
        "Albert Einstein (born 1879-03-14) was a physicist.",
        "Albert Einstein (born 1879-04-15) was a physicist.",
    );
    both(
        "About 3.5 million people live there.",
        "Some 3,500,000 people live there.",
        "Some 350,000 people live there.",
    );
}

#[test]
fn names_must_be_given() {
    let text = "Marie Curie was born in Warsaw in 1867.";
    carried("Marie Curie was born in Warsaw.", text);
    refused("Marie Curie was born in Paris.", text, "the passage does not name: Paris");
    refused("Pierre Curry was born in Warsaw.", text, "the contexts say nothing of: Pierre Curry");
}

#[test]
fn pronouns_may_stand_for_names() {
    carried("He was born in Ulm.", "Albert Einstein was born in Ulm, in the Kingdom of Württemberg.");
    carried("Albert Einstein was born in Ulm in 1879.", "Albert Einstein was a physicist. He was born in Ulm in 1879.");
}

#[test]
fn negation_turns_a_claim_round() {
    let plain = "The museum is open on Sundays.";
    for negated in [
        "The museum is not open on Sundays.",
        "The museum isn't open on Sundays.",
        "The museum isn’t open on Sundays.",
        "The museum is never open on Sundays.",
        "The museum is no longer open on Sundays.",
    ] {
        refused(plain, negated, "the passage negates it");
        refused(negated, plain, "the claim negates what the passage says");
        carried(negated, negated);
        carried(negated, "The museum does not open on Sundays.");
    }
}

#[test]
fn opposites_are_no_support() {
    let text = "Coffee consumption increases the risk of stroke in older adults.";
    carried("Coffee increases the risk of stroke.", text);
    refused("Coffee decreases the risk of stroke.", text, "the passage says the opposite of: decreases");
    both("Sales fell on Tuesday.", "Sales fell on Tuesday by 3%.", "Sales rose on Tuesday by 3%.");
    both("Output shrank by 12%.", "Output shrank by 12 percent.", "Output increased by 12 percent.");
    both("Backups are made daily.", "Backups are made daily at noon.", "Backups are made weekly at noon.");
    both("The minimum length is 12.", "The minimum length is 12 characters.", "The maximum length is 12 characters.");
}

#[test]
fn every_script_both_ways() {
    for (claim, yes, no) in [
        ("埃菲尔铁塔位于巴黎。", "埃菲尔铁塔位于法国巴黎战神广场。", "巴黎是法国的首都。"),
        ("他出生于1879年。", "爱因斯坦出生于1879年3月14日。", "爱因斯坦出生于1880年3月14日。"),
        ("这家店周日营业。", "这家店周日营业到很晚。", "这家店周日不营业。"),
        ("東京は日本の首都です。", "東京は日本の首都であり、最大の都市です。", "大阪は西日本最大の都市です。"),
        ("この店は日曜日に営業します。", "この店は日曜日も営業します。", "この店は日曜日に営業しません。"),
        ("서울은 대한민국의 수도이다.", "서울은 대한민국의 수도이자 최대 도시이다.", "부산은 대한민국 제2의 도시이다."),
        ("그 탑은 1889년에 완공되었다.", "에펠탑은 1889년에 완공되었다.", "에펠탑은 1887년에 완공되었다."),
        ("يقع برج إيفل في باريس.", "برج إيفل يقع في مدينة باريس الفرنسية.", "باريس هي عاصمة فرنسا."),
        ("افتتح البرج عام 1889.", "تم افتتح البرج عام ١٨٨٩ للجمهور.", "تم افتتح البرج عام ١٨٨٧ للجمهور."),
        (
            "Эйфелева башня находится в Париже.",
            "Эйфелева башня находится в центре Парижа.",
            "Париж является столицей Франции.",
        ),
        (
            "Музей открыт по воскресеньям.",
            "Музей открыт по воскресеньям и субботам.",
            "Музей не открыт по воскресеньям.",
        ),
        ("एफिल टॉवर पेरिस में स्थित है।", "एफिल टॉवर फ्रांस के पेरिस में स्थित है।", "पेरिस फ्रांस की राजधानी है।"),
        ("यह 1889 में खुला।", "यह टॉवर १८८९ में खुला था।", "यह टॉवर १८८७ में खुला था।"),
        ("หอไอเฟลตั้งอยู่ในปารีส", "หอไอเฟลตั้งอยู่ในกรุงปารีส ประเทศฝรั่งเศส", "กรุงเทพเป็นเมืองหลวงของประเทศไทย"),
        ("מגדל אייפל נמצא בפריז", "מגדל אייפל נמצא בפריז שבצרפת", "פריז היא בירת צרפת"),
        (
            "Ο Πύργος του Άιφελ βρίσκεται στο Παρίσι.",
            "Ο Πύργος του Άιφελ βρίσκεται στο Παρίσι της Γαλλίας.",
            "Το Παρίσι είναι η πρωτεύουσα.",
        ),
    ] {
        both(claim, yes, no);
    }
}

#[test]
fn what_a_context_repeats_is_attributed() {
    for claim in [
        "Norway",
        "norway.",
        "No.",
        "It is.",
        "He did not win the 1921 Nobel Prize, and Paris never had 1,234.5 towers.",
        "Is it? No! Yes. 12 %",
        "3. Bread",
        "🎉🎉",
        "…",
        "不。",
        "U.S. v. Nixon (1974)",
    ] {
        carried(claim, claim);
        let verdict = verdict(claim, &["Unrelated.", " ", &format!("  {claim}\n")]);
        assert!(verdict.attributed, "{claim}");
        assert_eq!(verdict.evidence[0].context, Some(2), "{claim}");
    }
}

#[test]
fn a_claim_may_be_longer_than_its_context() {
    refused(
        "Norway is a Nordic country whose capital Oslo lies at the head of a long fjord.",
        "Norway",
        "the contexts say nothing of: Nordic country, capital Oslo lies, head, long fjord",
    );
}

#[test]
fn every_sentence_of_a_claim_must_be_carried() {
    let text = "Oslo is the capital of Norway. It has an opera house.";
    carried("Oslo is the capital of Norway. It has an opera house.", text);
    assert!(!verdict("Oslo is the capital of Norway. It burned down in 1624.", &[text]).attributed);
}

#[test]
fn contexts_may_carry_a_claim_together() {
    let claim = "Marie Curie discovered polonium and won the Nobel Prize twice.";
    let halves = ["Marie Curie discovered polonium in Paris.", "She won the Nobel Prize twice."];
    assert!(halves.iter().all(|half| !verdict(claim, &[half]).attributed));
    let verdict = verdict(claim, &halves);
    assert!(verdict.attributed);
    assert_eq!(verdict.reason, "covered by several contexts together");
    let cited: Vec<_> = verdict.evidence.iter().map(|citation| citation.context).collect();
    assert_eq!(cited, [Some(0), Some(1)]);
}

#[test]
fn evidence_is_the_earliest_window_that_suffices() {
    let text = "Bread is old. Oslo is the capital of Norway. Fish is fresh.";
    let verdict = verdict("Oslo is the capital of Norway.", &["", "Fish.", text, text]);
    assert_eq!(verdict.evidence.len(), 1);
    assert_eq!(verdict.evidence[0].context, Some(2));
    assert_eq!(verdict.evidence[0].quote, "Oslo is the capital of Norway.");
}

#[test]
fn nothing_to_find_is_nothing_found() {
    refused("🎉", "A party.", "the claim holds no word or number to look for");
    carried("🎉", "A party 🎉!");
    refused("No.", "I know.", "the claim holds no word or number to look for");
    refused("Norway", " \n", "the contexts say nothing of: Norway");
}

#[test]
fn a_raised_stop_ends_it() {
    let stop = Stop::default();
    stop.raise();
    assert_eq!(decide(&question(&["a"], &["a"]), &stop), Err(Stopped));
}

/// Text that would cost a quadratic judge minutes: this test is about ending at all.
#[test]
fn hostile_text_takes_linear_time() {
    let long_claim: String = (0..10_000).map(|n| format!("w{n} ")).collect();
    for context in [
        "a\n".repeat(100_000),
        "not ".repeat(80_000),
        "字".repeat(80_000),
        "1,".repeat(80_000),
        "'".repeat(100_000),
        "\u{301}".repeat(80_000),
        "A.".repeat(80_000),
        "higher lower ".repeat(20_000),
        "American song, Alice beat Bob by far. ".repeat(8_000),
        long_claim.clone(),
    ] {
        let related =
            "more less raise fall higher lower grow shrink larger smaller film book he king city red man dog not";
        let named = "Bob beat Alice far American song Al Bo Cy Di Ed Fa Gi Ha Ik Jo Ko Lu Ma No Oz Pe Qi Ro Su Ti";
        let question = question(&[&context], &["a b c not 1 字字 A.", &long_claim, related, named]);
        assert_eq!(decide(&question, &Stop::default()).map(|verdicts| verdicts.len()), Ok(4));
    }
}

/// Looking through the contexts anew for each refused claim would cost 40 million comparisons here.
#[test]
fn many_refused_claims_share_one_look_at_the_contexts() {
    let claims: Vec<String> = (0..1000).map(|n| format!("z{n} q")).collect();
    let claims: Vec<&str> = claims.iter().map(String::as_str).chain(["🎉", "x\ny"]).collect();
    let context = format!("{}x y\n🎉 a", "a b\n".repeat(40_000));
    let verdicts = decide(&question(&[&context], &claims), &Stop::default()).unwrap();
    let attributed: Vec<&str> = claims.iter().zip(&verdicts).filter(|(_, v)| v.attributed).map(|(c, _)| *c).collect();
    assert_eq!(attributed, ["🎉", "x\ny"]);
}

/// Words that meet often, so that random claims are sometimes carried, with the odd hostile piece between them.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "Paris",
        "tower",
        "Oslo",
        "increases",
        "decreases",
        "not",
        "never",
        "1889",
        "1,234.5",
        "twelve",
        "percent",
        "%",
        ".",
        "!",
        "\n",
        "。",
        "東京都",
        "不",
        "서울",
        "กรุง",
        "برج",
        "१२",
        "isn't",
        "🎉",
        "The",
        "is",
        "opened",
        "U.S.",
        "'",
        "1879-03-14",
        "\u{301}",
        "ﷺ",
        "3.",
    ]);
    let words = prop::collection::vec(pieces, 0..12).prop_map(|words| words.join(" "));
    prop_oneof![4 => words, 1 => any::<String>()]
}

fn verdicts(claims: &[String], contexts: &[String]) -> Vec<Verdict> {
    let question = Question {
        user_input: String::new(),
        contexts: contexts.to_vec(),
        claims: Units::new(claims.to_vec()).unwrap(),
    };
    decide(&question, &Stop::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn verdicts_match_claims_and_quotes_match_contexts(
        claims in prop::collection::vec(text(), 1..4),
        contexts in prop::collection::vec(text(), 0..5),
    ) {
        let given = verdicts(&claims, &contexts);
        prop_assert_eq!(given.len(), claims.len());
        prop_assert_eq!(&given, &verdicts(&claims, &contexts));
        for verdict in given {
            prop_assert_eq!(verdict.attributed, !verdict.evidence.is_empty());
            prop_assert!(!verdict.reason.is_empty());
            for citation in verdict.evidence {
                let context = &contexts[citation.context.unwrap()];
                prop_assert!(context.contains(&citation.quote) && !citation.quote.trim().is_empty());
            }
        }
    }

    #[test]
    fn one_more_context_never_takes_a_claim_away(
        claims in prop::collection::vec(text(), 1..4),
        contexts in prop::collection::vec(text(), 0..5),
        more in text(),
        place in any::<prop::sample::Index>(),
    ) {
        let before = verdicts(&claims, &contexts);
        let mut grown = contexts.clone();
        grown.insert(place.index(contexts.len() + 1), more);
        let after = verdicts(&claims, &grown);
        prop_assert!(before.iter().zip(&after).all(|(before, after)| !before.attributed || after.attributed));
    }

    #[test]
    fn a_context_that_repeats_a_claim_carries_it(
        claim in text(),
        mut contexts in prop::collection::vec(text(), 0..4),
        place in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!claim.trim().is_empty());
        contexts.insert(place.index(contexts.len() + 1), claim.clone());
        prop_assert!(verdicts(&[claim], &contexts)[0].attributed);
    }

    #[test]
    fn other_claims_change_nothing(claims in prop::collection::vec(text(), 1..4), context in text()) {
        let together = verdicts(&claims, std::slice::from_ref(&context));
        for (claim, verdict) in claims.iter().zip(together) {
            let alone = verdicts(std::slice::from_ref(claim), std::slice::from_ref(&context));
            prop_assert_eq!(&alone[0], &verdict);
        }
    }
}

#[test]
fn scores_rank() {
    let question = question(
        &["The tower opened to the public on 31 March 1889."],
        &["The tower opened on 31 March 1889.", "The tower opened on 30 March 1889.", "Bread is baked."],
    );
    let scores: Vec<f32> = assess(&question, &Stop::default()).unwrap().iter().map(|found| found.margin).collect();
    assert!(scores[0] > scores[1] && scores[1] > scores[2], "{scores:?}");
}

#[test]
fn another_name_in_the_first_place_is_no_support() {
    for (claim, other, text) in [
        ("Berlin is the capital of Germany.", "Paris is the capital of Germany.", "Berlin is the capital of Germany."),
        (
            "Berlin is the capital of Germany.",
            "Paris is the capital of Germany.",
            "Berlin, the capital of Germany, has 3.7 million people.",
        ),
        ("Alice founded Acme in 1999.", "Bob founded Acme in 1999.", "Alice founded Acme in 1999."),
        ("Alice founded Acme in 1999.", "Bob founded Acme in 1999.", "In 1999, Alice founded Acme."),
        (
            "Jupiter is the largest planet in the Solar System.",
            "Mercury is the largest planet in the Solar System.",
            "Jupiter is the largest planet in the Solar System.",
        ),
        (
            "Marie Curie won the Nobel Prize in Chemistry in 1911.",
            "Pierre Curie won the Nobel Prize in Chemistry in 1911.",
            "Marie Curie won the Nobel Prize in Chemistry in 1911.",
        ),
        (
            "Java was released in 1995.",
            "Kotlin was released in 1995.",
            "Java was released by Sun Microsystems in 1995.",
        ),
        ("Java was released in 1995.", "Kotlin was released in 1995.", "Java was released in 1995."),
        ("Москва — столица России.", "Киев — столица России.", "Москва — столица России."),
        (
            "Berlin ist die Hauptstadt von Deutschland.",
            "Hamburg ist die Hauptstadt von Deutschland.",
            "Berlin ist die Hauptstadt von Deutschland.",
        ),
        ("Madrid es la capital de España.", "Barcelona es la capital de España.", "Madrid es la capital de España."),
        (
            "Paris est la capitale de la France.",
            "Lyon est la capitale de la France.",
            "Paris est la capitale de la France.",
        ),
        ("서울은 대한민국의 수도이다.", "부산은 대한민국의 수도이다.", "서울은 대한민국의 수도이다."),
        ("नई दिल्ली भारत की राजधानी है।", "मुंबई भारत की राजधानी है।", "नई दिल्ली भारत की राजधानी है।"),
        ("मुंबई भारत की राजधानी है।", "नई दिल्ली भारत की राजधानी है।", "मुंबई भारत की राजधानी है।"),
        ("القاهرة هي عاصمة مصر.", "الإسكندرية هي عاصمة مصر.", "القاهرة هي عاصمة مصر."),
        ("北京是中国的首都。", "上海是中国的首都。", "北京是中国的首都。"),
        ("東京は日本の首都です。", "大阪は日本の首都です。", "東京は日本の首都です。"),
        ("אייפל נמצא בפריז שבצרפת", "לונדון נמצא בפריז שבצרפת", "אייפל נמצא בפריז שבצרפת"),
    ] {
        carried(claim, text);
        for contexts in [&[text][..], &[text, "Fish is fresh.", text]] {
            assert!(!verdict(other, contexts).attributed, "attributed: {other} | {text}");
        }
    }
}

#[test]
fn names_must_not_change_places() {
    let text = "Google acquired YouTube in 2006. It has offices in Zurich.";
    carried("Google acquired YouTube in 2006.", text);
    refused("YouTube acquired Google in 2006.", text, "the passage says it the other way round of: YouTube, Google");
    // The other voice, and another order of what is no role.
    carried("YouTube was acquired by Google in 2006.", text);
    carried("In 2006 Google acquired YouTube.", text);
    both("Brazil beat Italy.", "In the final, Brazil beat Italy.", "In the final, Italy beat Brazil.");
    both("Italy beat Brazil.", "Italy beat Brazil in the final.", "Brazil beat Italy in the final.");
    both("Brazil was beaten by Italy.", "Brazil was beaten by Italy.", "Italy was beaten by Brazil.");
}

#[test]
fn what_stands_in_its_place_is_told() {
    let text = "The Shining is a horror novel by Stephen King. Its sales rose in the third quarter.";
    refused("The Shining is a song by Stephen King.", text, "the passage has another than: song");
    refused("Its sales fell in the third quarter.", text, "the passage says the opposite of: fell");
    refused("Its sales rose in the third decade.", text, "the passage says something else in place of: decade");
    refused("Its sales always rose in the third quarter.", text, "the passage does not say: always");
    carried("Its sales rose in the third quarter.", text);
}

#[test]
fn direction_is_read_off_the_nearest_word() {
    let text =
        "Whole fruits are associated with a lower risk of diabetes, and fruit juice with a higher risk of stroke.";
    both(
        "Whole fruits reduce the risk of diabetes.",
        text,
        "Whole fruits are associated with a higher risk of diabetes, and fruit juice with a lower risk of stroke.",
    );
}

#[test]
fn a_denial_must_be_answered() {
    both("He failed to reach the summit.", "He failed to reach the summit in 1953.", "He reached the summit in 1953.");
    refused(
        "The drug does not reduce pressure in the elderly.",
        "The drug reduces pressure in the elderly, and sleep improves.",
        "the claim negates what the passage says",
    );
}

#[test]
fn questions_and_opinions_are_no_statements() {
    let text = "The Eiffel Tower was built in 1889 in Paris.";
    carried("The Eiffel Tower was built in 1889.", text);
    let reason = "the claim asks, or speaks for whoever says it; the passage does not";
    refused("Was the Eiffel Tower built in 1889?", text, reason);
    refused("I think the Eiffel Tower was built in 1889.", text, reason);
    carried("I saw the Eiffel Tower in Paris.", "In May I saw the Eiffel Tower in Paris.");
}

#[test]
fn confidence_grows_with_the_margin() {
    let text = "The tower opened to the public on 31 March 1889.";
    let confidence = |claim: &str| {
        let found = assess(&question(&[text], &[claim]), &Stop::default()).unwrap().remove(0);
        (found.verdict.attributed, found.confidence())
    };
    let (whole, sure) = confidence(text);
    let (part, less_sure) = confidence("The tower opened to visitors on 31 March 1889 at noon.");
    assert!(whole && part && sure > less_sure, "{sure} {less_sure}");
    let (other, refusal) = confidence("Bread is baked from flour in 20 ovens.");
    assert!(!other && refusal > 0.7, "{refusal}");
    for claim in ["", "…", "tower", "No.", "The tower"] {
        assert!((0.5..=1.0).contains(&confidence(claim).1));
    }
}

#[test]
fn an_opener_that_names_nothing_may_be_absent() {
    for (claim, text) in [
        ("It is the capital of Germany.", "Berlin is the capital of Germany."),
        ("He founded Acme in 1999.", "Bob founded Acme in 1999."),
        ("They founded Acme in 1999.", "Alice and Bob founded Acme in 1999."),
        ("This is the capital of Germany.", "Berlin is the capital of Germany."),
        ("However, it is the capital of Germany.", "Berlin is the capital of Germany."),
        ("Additionally, Berlin is the capital of Germany.", "Berlin is the capital of Germany."),
        ("Albert Einstein was born in Ulm.", "Einstein was born in Ulm, in the Kingdom of Württemberg."),
        ("Berlin is the capital of Germany.", "It is the capital of Germany. Berlin has 3.7 million people."),
        ("그는 1879년에 울름에서 태어났다.", "아인슈타인은 1879년에 울름에서 태어났다."),
        ("他出生于1879年的乌尔姆。", "爱因斯坦出生于1879年的乌尔姆。"),
        ("यह भारत की राजधानी है।", "नई दिल्ली भारत की राजधानी है।"),
        ("هي عاصمة مصر.", "القاهرة هي عاصمة مصر."),
        ("Она столица России.", "Москва — столица России."),
    ] {
        carried(claim, text);
    }
}
