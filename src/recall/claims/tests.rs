use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::{cut, layout, stops};

/// References with a `|` at every place where one claim ends and the next begins.
const WHOLE_AND_CUT: &[&str] = &[
    // Plain sentences, one word, no final stop
    "Norway",
    "The Eiffel Tower is in Paris",
    "The Eiffel Tower is in Paris.",
    "The tower is in Paris. |It opened in 1889.",
    "The tower is in Paris. |It opened in 1889",
    "Is it tall? |Yes! |Very.",
    "Really?! |He could not believe it.",
    "It runs; it jumps: it never rests.",
    "😀🎉",
    "👍 🎉\n\n✨",
    "Great! |😀 London is next.",
    "Great!😀 |London is next.",
    "...",
    // Numbers, versions, times, dates
    "WCAG 2.1 has 78 criteria. |Version v1.2.3 follows 3.14.",
    "He paid 1.234,5 euros, or .5 of it. |She paid $3.50.",
    "See No. 5 and Nos. 6. |Then stop.",
    "He said no. |Then she left.",
    "It has 5 rooms. |3 are large.",
    "In 1889. |30 people came.",
    "The train leaves at 5 p.m. today.",
    "We met at 5 p.m. |The train left.",
    "We met at 5 p.m. Monday.",
    "Einstein was born on 14. March 1879 in Ulm.",
    "Einstein wurde am 14. März 1879 in Ulm geboren. |Er starb 1955.",
    "Der 3. Oktober ist ein Feiertag. |Im 19. Jahrhundert war das anders.",
    "Das war im 2. Weltkrieg. |Am 14. 3. 1879 nicht.",
    "Er wurde 19. |Dann zog er um.",
    "He was 19. |Germany won.",
    "The war began in 1939. |Germany invaded Poland.",
    // Initials and abbreviations
    "Dr. Ada K. Lee works here. |She is 40.",
    "J. R. R. Tolkien wrote it. |C.S. Lewis did not.",
    "J.-P. Sartre and George W. Bush never met.",
    "Fruit, e.g. apples, i.e. The Big Apple, is good.",
    "The U.S. economy grew. |The U.S. Congress met.",
    "He lives in the U.S. |He likes it.",
    "He lives in the U.S. with A. Smith.",
    "See Fig. 2 and Fig. S1 of Lee et al. 2019.",
    "So say Lee et al. |The others differ.",
    "Cats vs. Dogs costs approx. 30 euros.",
    "Apple Inc. Chairman Levinson spoke. |It fell.",
    "Foo Inc. |The company grew.",
    "St. Petersburg and Mt. Everest are far apart.",
    "He lives on Main St. |The house is red.",
    "Martin Luther King Jr. |He spoke.",
    "He has a Ph.D. in physics. |She has an M.A.",
    "Take vitamin C. |Oranges hold it.",
    "World War I. |Germany lost.",
    "Brown v. Board of Education was decided in 1954.",
    "He sold apples, pears, etc. |They were good.",
    "He was Mr. In and Ms. The.",
    // Names with stops in them
    "Node.js is fast. |See example.com. |It works.",
    "Write to a.b@example.com or see https://example.com/a.b?c=d!e.html now.",
    "Open main.rs. |Then close it.",
    "Yahoo! is old. |Yahoo! Japan is not. |Yahoo! |It grew.",
    "The tower is tall.|The tower is old.",
    "It is said so. |mRNA is short.",
    "The text is here. |https://example.com has it.",
    // Ellipses
    "Wait... there is more.",
    "He left... |Then she came.",
    "He left… |Then she came… slowly.",
    "You are . . . moving on.",
    "He said [...] Paris is (…) Big.",
    "...The tower is tall.",
    // Quotes and brackets
    "\"He left.\" |She stayed.",
    "“He left.” |‘She stayed.’ |«It rained.»",
    "(See below.) |Next comes this.",
    "(He left. |She stayed.)",
    "He said \"Stop!\" and left.",
    "He asked \"Why?\" |Nobody knew.",
    "The tower (built 1889. Very tall.) is in Paris. |It stands.",
    "He was born in 1340 (?) In England.",
    "It stands in Paris.[1] |It opened in 1889.[2][3] |It is tall.[citation needed]",
    "It stands.[1]|It is tall.",
    "\" Roar \" is a song . |She said \" I left . \" |He stayed .",
    "Stay clear of the beam. |(c) the vessel turns.",
    // Markdown and lists
    "**Paris.** |It is _big._ |`X.y` is code.",
    "# Paris\n|It is big.\n|## 1. Size\n|It is 105 km².",
    "- Paris is big. |It is old.\n|- Rome\n|* Bonn\n|• Ulm",
    "1. Open the box.\n|2) Close it. |Then rest.\n|a) One\n|b. Two\n|(2) Three\n|iv. Four\n|2.3. Five",
    "Steps: 1. Open the box. |2. Close it. |3. Go.",
    "1. Open the box |2. Close it |3. Go",
    "1.\nOpen the box.\n|2.\n\nClose it.\n3.",
    "Title\n=====\n|Text.\n---",
    "Say:\n|```rust\nlet x = 1.0;\nlet y = 2. + x;\n```\n|Done.",
    "```\nunclosed fence\n|It goes on.",
    "Two lines\n|of prose\r\n|and\u{2028}|more\u{85}|of it\u{2029}|here",
    // Lower case throughout
    "the dog is big. |it eats a lot, e.g. meat. |7 bones.",
    "i guess so. |it is true! |really.",
    // German, French, Spanish, Italian, Portuguese
    "Viele Tiere, z. B. Hunde, d. h. Die Guten, usw. sind da. |Sie bellen.",
    "Er kauft Äpfel, Birnen usw. |Die Äpfel sind rot. |Vgl. Abs. 3.",
    "Ludwig XIV. war König. |Prof. Müller lehrt bzw. Forscht.",
    "„Er ging.“ |Sie blieb. |»Wirklich?« |Ja.",
    "M. Dupont est venu avec Mme. Curie. |Il est parti.",
    "M. Le Pen a parlé. |« Il part. » |Elle reste.",
    "El Sr. García y la Sra. López llegaron. |¿Quién es? |¡Vamos!",
    "Il sig. Rossi è qui. |Sono le 5.",
    "O Sr. Silva chegou. |Ele saiu.",
    // Russian, Greek
    "Он жил в г. Москва, т. е. В столице. |Она уехала.",
    "А. С. Пушкин родился в 1799 г. |Он поэт.",
    "Ул. Ленина и т. д. |Это всё.",
    "Πού είναι; |Εδώ. |Ο Κ. Π. Καβάφης έγραψε.",
    "Πού είναι\u{37E} |Εδώ είναι.",
    // Chinese, Japanese, Korean
    "埃菲尔铁塔位于巴黎。|它于1889年开放。",
    "真的吗？！|是的！|好",
    "他说：“我走了。”|她留下了。",
    "他走了．|她留下了。",
    "圆周率是3.14。|版本是2.0。",
    "彼は「行く。」と言った。|彼女は残った。",
    "『君の名は。』は映画です。|（2016年公開。）|人気です｡|そう",
    "그는 갔다. |그녀는 남았다. |3.5배다.",
    // Hindi, Arabic, Persian, Urdu, Hebrew
    "ताजमहल आगरा में है। |डॉ. आंबेडकर महू में जन्मे थे॥ |क्या?",
    "أين البرج؟ |البرج في باريس. |افتتح عام 1889.",
    "د. أحمد طبيب. |يعمل هنا.",
    "او رفت. |آیا آمد؟ |در سال ۳.۵ ه.ش بود.",
    "این درست است.|ولی آن نه.",
    "تاج محل آگرہ میں ہے۔ |کیا یہ سچ ہے؟ |ہاں۔",
    "המגדל בפריז. |הוא נפתח ב-1889.",
    // Thai, Khmer, Lao, Amharic, Burmese, Armenian
    "หอไอเฟลอยู่ที่ปารีส เปิดในปี 1889 สูงมาก",
    "ວຽງຈັນ ເປັນ ນະຄອນຫຼວງ",
    "ភ្នំពេញជារដ្ឋធានី។ |វាធំ៕",
    "አዲስ አበባ ዋና ከተማ ናት። |ትልቅ ናት፧ |ነው",
    "ရန်ကုန်၊ မန္တလေး ရှိသည်။ |ကြီးသည်။",
    "Երևանը մայրաքաղաք է։ |Մեծ է։",
    // Elisions, marks inside words
    "Selon l'art. 5 du Code, c'est interdit. |Dell'art. 5 si parla.",
    "Selon l’art. 5, l’hôtel est fermé. |L’avv. Rossi e l'ing. Verdi lo sanno.",
    "I said I don't. |We can't. |They're rock'n'roll. |He left.",
    "प्रो. शर्मा आए। |वे बी.जे.पी. में हैं।",
    "वह यहाँ है. |फिर वह गया.",
    "எம்.ஜி.ஆர். என அவர் அழைக்கப்பட்டார். |அவர் நடிகர்.",
    "ரஜினி ஒரு நடிகர். |அவர் பெங்களூரில் பிறந்தார்.",
    "மு. கருணாநிதி வந்தார். |அவர் பேசினார்.",
    // Quotations of China and Korea
    "她笑了。|“真的吗？”他问。|她点头。",
    "他说。|‘好。’",
    "他笑了。|“‘好’是什么？”",
    "„Er ging.“ |Sie blieb. |Er sagte: ‚Nein.‘ |Gut.",
    "He left. |“She stayed.” |‘It rained.’",
    "그는 \"가자.\"라고 말했다. |그녀는 \"정말요?\"라고 물었다.",
    "그는 “좋다!”고 했다. |그녀는 '간다.'며 웃었다. |끝났다.",
    "\"가자.\" 라고 말했다. |\"하자.\" |그녀는 갔다.",
    "2020. 3. 5. 발표되었다. |법은 2019. 12. 31. 끝났다. |좋다.",
    // Everyday abbreviations
    "Berlin hat 3,7 Mio. Einwohner und 5 Mrd. Euro Schulden. |Die Stadt wächst.",
    "Dr. med. Müller wohnt Hauptstr. 5. |Dr. rer. nat. Schmidt auch. |Es gilt mind. 4 Jahre.",
    "Dr.-Ing. Schmidt zahlt MwSt. 20 Prozent. |Der Hl. Nikolaus kommt.",
    "Han fick följa med. |Hon stannade.",
    "Keep it in mind. |Then go. |That is ok. |We left. |He came in. |We left.",
    "Cäsar starb 44 v. Chr. Rom trauerte nicht.",
    "Vive en EE. UU. con Juan. |Tiene aprox. 5 casas en la Av. Libertador. |Es rico.",
    "Trump ganó en EE. UU. Texas y en EE.UU. |El resto perdió.",
    "Rome fut fondée en 753 av. J.-C. |Elle a env. 5 portes. |MM. Dupont y vivent.",
    "No séc. XIX, a Av. Paulista tinha aprox. 12 casas. |O Exmo. Sr. Silva vivia lá.",
    "Dhr. Jansen en mevr. De Vries kwamen. |Ir. Bakker ook.",
    "She has MS. |The cure is far. |Rome fell in 44 BC. |Caesar died.",
    "È mio. |Domani parto.",
    "Mieszka przy ul. Długiej od ok. 2 lat. |Np. Kraków jest duży.",
    "Кв. 12 продана. |Он живёт в кв. 12. |Цена 500 руб. |Скидка 5 %.",
    "Sv. Václav byl kníže. |Např. Praha je velká. |Nám. Míru též.",
    "Biler, f.eks. Volvo, bl.a. Saab, kommer kl. 5. |Kl. 5 går han. |De er gode.",
    "Η κα. Νίκου και ο κ. Παππάς ήρθαν. |Έφυγαν.",
    "Kb. 1,7 millió ember él itt. |Pl. Budapest nagy.",
    "Esim. Turku on vanha. |Ks. Liite.",
    "TP. Hồ Chí Minh rất lớn. |TS. Nguyễn và GS. Trần ở đó.",
    "PT. Freeport di Jl. Sudirman membayar Rp. 5.000. |Itu murah.",
    "Prince, a.k.a. The Artist, sang ft. Rihanna. |He was 6 ft. 2 in. |Then he left.",
    "She was 5 ft. |Then she grew. |Ft. Worth is big.",
    // Units, times, enumerations, the Greek question
    "Water boils at 100 °C. |Ice melts at 0°C. |It was 5 °F. |Snow fell.",
    "Use 10 A. |Fuses help. |It gives 5 N·m. |Power is 3 W. |Cars do 100 km/h. |Trains do more.",
    "In 1990 A. Smith and J. Lee met. |By 2019 K. Lee had left.",
    "They sell apples, oranges, etc. |Prices vary. |He sold pens, etc. Inc.",
    "He died at 3 a.m. |Doctors came. |The shop opens at 9 a.m. Eastern time. |It shuts at 5 p.m. EST daily.",
    "At 3 p.m. Obama spoke. |A.M. Turing did not.",
    "Πού βρίσκεται; |Στην Αττική. |«Ποιος είναι;» |Ο Νίκος; ναι.",
    "The letters α; Then β.",
    "Say:\n|~~~\nlet x = 1. Then two.\n```\n~~~\n|Done.",
    "Title\n~~~~~\n|One. |Two.\n|Other\n~~~~~\n|Three.",
];

/// The table's rows that hold a `|` of their own.
#[test]
fn a_table_row_is_one_claim() {
    assert_eq!(
        cut("| City | Size. Big. |\n|---|---|\n| Paris | 2.1 m. It grew. |\n\nSo it is."),
        ["| City | Size. Big. |\n|---|---|", "| Paris | 2.1 m. It grew. |", "So it is."]
    );
    assert_eq!(cut("|---|\n| a |"), ["|---|\n| a |"]);
}

#[test]
fn references_are_cut_where_a_reader_would() {
    let mut wrong = String::new();
    for row in WHOLE_AND_CUT {
        let expected: Vec<&str> = row.split('|').map(str::trim).collect();
        let reference = row.replace('|', "");
        let found = cut(&reference);
        if found != expected {
            wrong.push_str(&format!("expected {expected:?}\n   found {found:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(WHOLE_AND_CUT.len() >= 80);
}

#[test]
fn blank_is_no_claim_and_anything_else_is_one() {
    for blank in ["", " ", "\n\r\n\t", "\u{2028}\u{a0}"] {
        assert!(cut(blank).is_empty());
    }
    for lone in ["1.", "-", "```", "|", "。", "a", "1.\n", "\n1.\n2."] {
        assert_eq!(cut(lone), [lone.trim()]);
    }
}

/// The stops are Unicode's, apart from the corrections the module head names.
#[test]
fn the_stops_are_those_of_uax_29() {
    for c in '\u{80}'..=char::MAX {
        // A word, the character, a capital: two sentences where the character is a stop, as no other rule cuts there.
        let text = format!("a{c} B");
        let unicode =
            !c.is_whitespace() && !('\u{80}'..'\u{a0}').contains(&c) && text.split_sentence_bounds().count() > 1;
        let corrected = match c {
            '\u{104A}' => false,
            '…' | '\u{37E}' | '\u{203D}' => true,
            _ => unicode,
        };
        assert_eq!(stops::is_stop(c), corrected, "U+{:04X}", u32::from(c));
    }
}

#[test]
fn pieces_end_with_the_text() {
    for text in ["a", "a.", "a. B", "1.", "1.\n", "\n"] {
        assert_eq!(layout::ends(text).last(), Some(&text.len()));
    }
}

/// Hostile texts, long enough that anything worse than linear would take minutes in a debug build.
#[test]
fn long_texts_take_linear_time() {
    for unit in [
        ".",
        ". ",
        "a. ",
        "A. ",
        "1. ",
        "(",
        ")",
        "(.",
        "(1) ",
        "x. (1) ",
        "```\n",
        "\n",
        "[",
        "a.\u{4E2D}.",
        " ",
        "- ",
        "dr. (1) 1. ",
        "\".",
        "The U.S. ",
        "1.\n",
        ": 1. ",
        "||",
        ". \u{2014} ",
        "中。",
        "A.[1]",
        "Dr. (",
        "Dr. [a ",
        "a.** ",
        "3 a.m. Monday ",
        "αα; ",
        "αα;»",
        "~~~\n",
        ".”他们",
        "l'a. ",
        "க். ",
        "5 A. 5 ",
    ] {
        let text = unit.repeat(300_000 / unit.len());
        assert!(cut(&text).len() <= text.len());
    }
}

fn without_white_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Texts made of what the rules look at.
fn mixed() -> impl Strategy<Value = String> {
    let bits = [
        ".", ".", ". ", "...", "…", "!", "?", "。", "！", "।", "؟", "۔", " ", "  ", "\n", "\r\n", "\u{2028}", "\"",
        "'", "”", "“", "(", ")", "[", "]", "[1]", "「", "」", "»", "*", "**", "- ", "1. ", "2. ", "(a) ", "|", "```",
        "#", ",", ":", ";", "a", "A", "The", "the", "It", "U.S", "Dr", "e.g", "No", "Fig", "3", "14", "März", "l'",
        "प्", "Πού", "5 A. ", "etc. ", "~~~", "‘", "他", "z", "B", "中", "文", "と", "の", "그", "א", "د", "क", "😀",
        "é", "e\u{301}", "\u{200B}", "mRNA", "www.a.de", "://",
    ];
    prop::collection::vec(prop::sample::select(bits.to_vec()), 0..40).prop_map(|bits| bits.concat())
}

fn keeps_every_promise(text: &str) -> Result<(), TestCaseError> {
    let claims = cut(text);
    prop_assert_eq!(without_white_space(&claims.concat()), without_white_space(text));
    prop_assert_eq!(claims.is_empty(), text.trim().is_empty());
    let letters = text.contains(char::is_alphanumeric);
    let mut from = text.as_ptr() as usize;
    for claim in &claims {
        prop_assert_eq!(claim.trim(), *claim);
        prop_assert!(!claim.is_empty());
        prop_assert!(!letters || claim.contains(char::is_alphanumeric));
        prop_assert!(claim.as_ptr() as usize >= from);
        from = claim.as_ptr() as usize + claim.len();
    }
    prop_assert!(from <= text.as_ptr() as usize + text.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_of_mixed_texts(text in mixed()) {
        keeps_every_promise(&text)?;
    }

    #[test]
    fn nothing_is_lost_of_any_text(text in any::<String>()) {
        keeps_every_promise(&text)?;
    }

    /// A claim of whole plain sentences is not cut again. Elsewhere that need not hold: a lone claim may be written in
    /// small letters throughout where the reference was not, or have lost the number before its own.
    #[test]
    fn plain_claims_stay_whole(words in prop::collection::vec("[A-Z][a-z]{4,9}( [a-z]{4,9}){0,5}[.!?]", 1..8)) {
        let text = words.join(" ");
        let claims = cut(&text);
        prop_assert_eq!(claims.len(), words.len());
        for claim in claims {
            prop_assert_eq!(cut(claim), [claim]);
        }
    }
}
