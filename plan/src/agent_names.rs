//! The names of agents without a declared name: Japanese railway stations.

/// Whether this can be the name of an agent without a declared one: a station, or one with a number (`takao-2`).
pub fn is_station(name: &str) -> bool {
    let numbered = name.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok_and(|number| number > 1));
    STATIONS.contains(&name) || numbered.is_some_and(|(station, _)| STATIONS.contains(&station))
}

/// The stations, by region.
#[rustfmt::skip]
pub const STATIONS: &[&str] = &[
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
