//! Names for agents that nobody named: Japanese railway stations, the same ones for the same run.

use sha2::{Digest, Sha256};

/// The name of the agent at `index` among those that `run` names, from 0: none that is `taken`. Every station is used
/// before one gets a number (`takao-2`).
pub(crate) fn name(run: &str, index: u32, taken: impl Fn(&str) -> bool) -> String {
    let count = STATIONS.len();
    let (start, step) = walk(run);
    let mut turn = index as usize;
    loop {
        let station = STATIONS[(start + turn % count * step) % count];
        let name = match turn / count {
            0 => station.to_owned(),
            round => format!("{station}-{}", round + 1),
        };
        if !taken(&name) {
            return name;
        }
        turn += 1;
    }
}

/// Where a run begins in the list, and how far it steps: every station is met once before one is met again.
fn walk(run: &str) -> (usize, usize) {
    let count = STATIONS.len();
    let digest = Sha256::digest(run.as_bytes());
    let number = |at: usize| digest[at..at + 4].iter().fold(0, |number: usize, &byte| number * 256 + usize::from(byte));
    let mut step = 1 + number(4) % (count - 1);
    while common_divisor(step, count) > 1 {
        step = step % (count - 1) + 1;
    }
    (number(0) % count, step)
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The stations, by region.
#[rustfmt::skip]
const STATIONS: &[&str] = &[
    // Tokyo and the west of it.
    "takao", "mitaka", "kichijoji", "ogikubo", "nakano", "koenji", "asagaya", "tachikawa", "hachioji", "kokubunji",
    "musashi-sakai", "kunitachi", "toyoda", "hino", "nishi-hachioji", "sagamiko", "fujino", "uenohara", "otsuki", "shiojiri",
    "shinjuku", "shibuya", "harajuku", "yoyogi", "ebisu", "meguro", "gotanda", "osaki", "shinagawa", "tamachi",
    "hamamatsucho", "shimbashi", "yurakucho", "tokyo", "kanda", "akihabara", "okachimachi", "ueno", "uguisudani", "nippori",
    "tabata", "komagome", "sugamo", "otsuka", "ikebukuro", "mejiro", "takadanobaba", "ochanomizu", "suidobashi", "iidabashi",
    "ichigaya", "yotsuya", "shinanomachi", "sendagaya", "okubo", "ryogoku", "kinshicho", "kameido", "hirai", "koiwa",
    "ichikawa", "funabashi", "tsudanuma", "makuhari", "inage", "chiba", "soga", "kisarazu", "narita", "sakura",
    "choshi", "tateyama", "kamogawa", "ohara", "mobara", "oami", "togane", "abiko", "kashiwa", "matsudo",
    "kameari", "ayase", "kitasenju", "minowa", "asakusa", "kuramae", "ningyocho", "kayabacho", "hatchobori", "tsukiji",
    "ginza", "kasumigaseki", "toranomon", "kamiyacho", "roppongi", "hiroo", "akasaka", "nogizaka", "omotesando", "aoyama",
    "shimokitazawa", "umegaoka", "gotokuji", "kyodo", "chitose-funabashi", "soshigaya", "seijogakuen", "komae", "noborito", "machida",
    "sagami-ono", "atsugi", "isehara", "hadano", "odawara", "chofu", "fuchu", "bubaigawara", "tsutsujigaoka", "sakurajosui",
    "meidaimae", "sasazuka", "hatagaya", "hatsudai", "kugayama", "inokashira", "nerima", "hibarigaoka", "tokorozawa", "hanno",
    "chichibu", "kawagoe", "shiki", "wako", "narimasu", "akabane", "kawaguchi", "warabi", "urawa", "omiya",
    "ageo", "okegawa", "konosu", "kumagaya", "fukaya", "honjo", "takasaki", "maebashi", "shibukawa", "minakami",
    "jiyugaoka", "denenchofu", "futako", "mizonokuchi", "aobadai", "nagatsuta", "hiyoshi", "kikuna", "tsunashima", "kamata",
    "kawasaki", "tsurumi", "yokohama", "sakuragicho", "kannai", "ishikawacho", "negishi", "isogo", "ofuna", "kamakura",
    "zushi", "yokosuka", "kurihama", "fujisawa", "chigasaki", "hiratsuka", "oiso", "ninomiya", "kozu", "enoshima",
    // The north.
    "utsunomiya", "oyama", "nikko", "nasushiobara", "mito", "tsuchiura", "hitachi", "iwaki", "koriyama", "fukushima",
    "yonezawa", "yamagata", "shinjo", "sendai", "matsushima", "ishinomaki", "ichinoseki", "hiraizumi", "kitakami", "hanamaki",
    "morioka", "hachinohe", "aomori", "hirosaki", "odate", "akita", "yokote", "sakata", "tsuruoka", "murakami",
    "niigata", "nagaoka", "naoetsu", "itoigawa", "toyama", "takaoka", "kanazawa", "komatsu", "fukui", "tsuruga",
    "hakodate", "oshamambe", "toya", "noboribetsu", "tomakomai", "chitose", "sapporo", "otaru", "kutchan", "niseko",
    "asahikawa", "furano", "biei", "obihiro", "kushiro", "nemuro", "abashiri", "wakkanai", "nayoro", "kitami",
    // The middle.
    "atami", "ito", "mishima", "numazu", "fuji", "shimizu", "shizuoka", "yaizu", "kakegawa", "hamamatsu",
    "toyohashi", "okazaki", "kariya", "kanayama", "nagoya", "gifu", "ogaki", "sekigahara", "maibara", "hikone",
    "nagano", "matsumoto", "suwa", "chino", "kobuchizawa", "kofu", "karuizawa", "ueda", "komoro", "nakatsugawa",
    "tajimi", "takayama", "gero", "inuyama", "yokkaichi", "kameyama", "matsusaka", "ise", "toba", "kashikojima",
    // The west.
    "kusatsu", "otsu", "kyoto", "arashiyama", "uji", "nara", "tenri", "sakurai", "kashihara", "yoshino",
    "osaka", "umeda", "namba", "tennoji", "kyobashi", "juso", "takatsuki", "ibaraki", "suita", "sakai",
    "wakayama", "shirahama", "shingu", "amagasaki", "nishinomiya", "ashiya", "sannomiya", "kobe", "akashi", "himeji",
    "toyooka", "kinosaki", "tottori", "yonago", "matsue", "izumo", "hamada", "masuda", "okayama", "kurashiki",
    "fukuyama", "onomichi", "mihara", "hiroshima", "miyajima", "iwakuni", "tokuyama", "hagi", "shimonoseki", "takamatsu",
    "marugame", "kotohira", "tokushima", "naruto", "kochi", "nakamura", "uwajima", "matsuyama", "imabari", "niihama",
    "moji", "kokura", "hakata", "tenjin", "dazaifu", "kurume", "saga", "karatsu", "sasebo", "nagasaki",
    "isahaya", "omuta", "kumamoto", "aso", "yatsushiro", "minamata", "oita", "beppu", "yufuin", "nobeoka",
    "miyazaki", "aburatsu", "kirishima", "kagoshima", "ibusuki", "makurazaki",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_station_is_a_name_and_stands_once() {
        let unique: BTreeSet<&&str> = STATIONS.iter().collect();
        let twice: Vec<_> = STATIONS.iter().enumerate().filter(|(at, name)| STATIONS[..*at].contains(name)).collect();
        assert_eq!(twice, []);
        assert!(unique.len() > 300, "{}", unique.len());
        for name in STATIONS {
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        }
        assert!(["takao", "mitaka", "kichijoji"].iter().all(|name| unique.contains(name)));
    }

    #[test]
    fn names_depend_on_the_run_and_the_index_alone() {
        let names = |run: &str| (0..5).map(|index| name(run, index, |_| false)).collect::<Vec<_>>();
        assert_eq!(names("20261122-014233-k3f9"), names("20261122-014233-k3f9"));
        assert_ne!(names("20261122-014233-k3f9"), names("20261122-014233-k3fb"));
        assert_eq!(names("r1"), names("r1"));
    }

    #[test]
    fn every_station_comes_before_one_gets_a_number() {
        let count = u32::try_from(STATIONS.len()).unwrap();
        for run in ["r1", "", "20261122-014233-k3f9"] {
            let names: BTreeSet<String> = (0..2 * count).map(|index| name(run, index, |_| false)).collect();
            assert_eq!(names.len(), STATIONS.len() * 2);
            assert!((0..count).all(|index| STATIONS.contains(&name(run, index, |_| false).as_str())));
            assert!(name(run, count, |_| false).ends_with("-2"));
        }
    }

    #[test]
    fn no_name_is_taken() {
        let mut taken = BTreeSet::new();
        // Always asked for the first one, and all stations are taken but one.
        for _ in 0..STATIONS.len() {
            let name = name("r1", 0, |name| taken.contains(name));
            assert!(taken.insert(name));
        }
        assert_eq!(taken.len(), STATIONS.len());
        assert_eq!(name("r1", 0, |name| taken.contains(name)), format!("{}-2", name("r1", 0, |_| false)));
        assert_eq!(name("r1", 0, |name| name != "mitaka-3"), "mitaka-3");
    }
}
