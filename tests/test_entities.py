"""Which queries are comparisons, what they compare, and which chunks name it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from waiting import ends_soon

from ragfilter.text.comparison import (
    MAX_CHARS,
    MAX_WORDS,
    alternatives,
    detect,
    names,
    parts,
    readings,
    title_is,
    title_names,
)

FIGHTERS = (
    "Who is more likely to win in a fight - a 4th level fighter with an armor class of 3 or a 7th "
    "level fighter with an armor class of 9? Both fighters have a strength of 16, a constitution "
    "of 16, and a dexterity of 12. They both wield long swords."
)
DRUID = FIGHTERS.replace("7th level fighter", "7th level druid").replace("Both fighters", "Both")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # X vs Y
        ("hill giant vs troll", "hill giant|troll"),
        ("Hill Giant vs. Troll?", "Hill Giant|Troll"),
        ("Black Dragon VS Gold Dragon", "Black Dragon|Gold Dragon"),
        ("a hill giant versus the troll.", "hill giant|troll"),
        ("hill giant vs.troll", "hill giant|troll"),
        ("X vs Y vs Z", "X|Y|Z"),
        ("X vs Y vs", "X|Y"),
        ("“hill giant” vs 'troll'", "hill giant|troll"),
        ("  hill giant \t vs \u00a0 troll  ", "hill giant|troll"),
        ("Tell me about hill giant vs troll in a fight", "hill giant|troll"),
        ("Who would win: hill giant vs troll", "hill giant|troll"),
        ("hill giant vs troll, which is stronger?", "hill giant|troll"),
        ("hill giant vs troll: who wins?", "hill giant|troll"),
        ("longsword vs. two-handed sword - which one is better?", "longsword|two-handed sword"),
        ("a hill giant with a club vs a troll", "hill giant|troll"),
        (
            "Protection from Evil vs Protection from Good",
            "Protection from Evil|Protection from Good",
        ),
        ("Staff of the Magi vs Staff of Power", "Staff of the Magi|Staff of Power"),
        ("Will-o'-wisp vs wraith", "Will-o'-wisp|wraith"),
        ("St. Cuthbert vs. Dr. Strange", "St. Cuthbert|Dr. Strange"),
        ("I have a question. Hill giant vs troll?", "Hill giant|troll"),
        ("How strong is a troll compared to an ogre?", "troll|ogre"),
        ("Дракон vs Тролль", "Дракон|Тролль"),
        (
            "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
            "fighter|druid",
        ),
        # compare X and|with|to Y
        ("compare X and Y", "X|Y"),
        ("Compare a hill giant with a troll", "hill giant|troll"),
        ("compare the lich to the vampire.", "lich|vampire"),
        ("compare X, Y and Z", "X|Y|Z"),
        ("Compare X, Y, and Z", "X|Y|Z"),
        ("compare X and Y with Z", "X|Y|Z"),
        ("Please compare a black dragon and a gold dragon in combat", "black dragon|gold dragon"),
        ("compare and contrast elves and dwarves", "elves|dwarves"),
        ("compare speak with dead and speak with animals", "speak with dead|speak with animals"),
        ("compare speak with dead to animate dead", "speak with dead|animate dead"),
        ("compare the armor class of a troll and an ogre", "troll|ogre"),
        ("compare X and Y, which one is stronger?", "X|Y"),
        ("compare X and Y: which is better?", "X|Y"),
        (
            "Compare hit dice: hill giant, stone giant and frost giant",
            "hill giant|stone giant|frost giant",
        ),
        ("How does a troll compare to an ogre?", "troll|ogre"),
        ("comparison of owlbear and bugbear", "owlbear|bugbear"),
        # difference between X and Y
        ("difference between a wraith and a wight", "wraith|wight"),
        (
            "What are the differences between a wraith, a wight and a spectre?",
            "wraith|wight|spectre",
        ),
        ("What's the difference in hit dice between trolls and ogres?", "trolls|ogres"),
        # which|what …, X or Y
        ("What monster is more powerful, a hill giant or a troll?", "hill giant|troll"),
        ("Which is stronger, hill giant or troll?", "hill giant|troll"),
        ("which is stronger: a hill giant or a troll", "hill giant|troll"),
        ("What monster is tougher - ettin or troll?", "ettin|troll"),
        ("which is stronger a hill giant or a troll", "hill giant|troll"),
        ("Which is strongest, a troll, an ogre, or a hill giant?", "troll|ogre|hill giant"),
        ("Which monster, in a dungeon, is stronger, a troll or an ogre?", "troll|ogre"),
        ("Tell me which is stronger, a troll or an ogre, and why", "troll|ogre"),
        ("In a fight, which is stronger, a troll or an ogre?", "troll|ogre"),
        # who would win … X or|against Y
        ("Who would win in a fight, a troll or an ogre?", "troll|ogre"),
        ("Who would win a fight between a troll and an ogre in a swamp?", "troll|ogre"),
        ("who would win: troll against ogre", "troll|ogre"),
        ("Who would win, a troll, an ogre or an ettin?", "troll|ogre|ettin"),
        ("who would win troll or ogre", "troll|ogre"),
        ("who’d win, Orcus or Demogorgon", "Orcus|Demogorgon"),
        (DRUID, "fighter|druid"),
        ("level 3 thief vs a 12-level monk", "thief|monk"),
        # Names that differ in signs or numbers
        ("difference between C and C++", "C|C++"),
        ("C vs. C++ vs. C#", "C|C++|C#"),
        ("ASP.NET vs .NET Core", "ASP.NET|.NET Core"),
        ("Next.js vs Node.js", "Next.js|Node.js"),
        ("difference between Dijkstra and A*", "Dijkstra|A*"),
        ("**troll** vs *ogre*", "troll|ogre"),
        ("`let` vs `var`", "let|var"),
        ("B tree vs B+ tree", "B tree|B+ tree"),
        ("T-SQL vs PL/SQL", "T-SQL|PL/SQL"),
        ("difference between == and === in JavaScript", "==|==="),
        ("Yahoo! vs Google", "Yahoo|Google"),
        ("iPhone 15 Pro vs 15 Pro Max", "iPhone 15 Pro|iPhone 15 Pro Max"),
        ("Python 2 vs 3", "Python 2|Python 3"),
        ("401 vs 403", "401|403"),
        # Names that begin with VS
        ("VS Code vs Vim", "VS Code|Vim"),
        ("vim vs vs code", "vim|vs code"),
        ("difference between VS Code and Vim", "VS Code|Vim"),
        ("difference between Vim and VS Code", "Vim|VS Code"),
        ("Which editor is best: Emacs, VS Code or Vim?", "Emacs|VS Code|Vim"),
        ("Is Vim better than VS Code?", "Vim|VS Code"),
        ("When should I use VS Code vs Vim?", "VS Code|Vim"),
        # An aspect before or after the sides
        ("MySQL vs PostgreSQL performance", "MySQL|PostgreSQL"),
        ("mysql vs postgresql performance", "mysql|postgresql performance"),
        ("MySQL vs PostgreSQL for analytics", "MySQL|PostgreSQL"),
        ("MySQL vs PostgreSQL on AWS", "MySQL|PostgreSQL"),
        ("Redis vs Memcached as a cache", "Redis|Memcached"),
        ("React vs Vue with TypeScript", "React|Vue"),
        ("list vs tuple in Python", "list|tuple"),
        ("animate dead vs speak with dead", "animate dead|speak with dead"),
        ("Django vs Ruby on Rails", "Django|Ruby on Rails"),
        ("walking speed vs running speed", "walking speed|running speed"),
        ("profit vs marginal cost", "profit|marginal cost"),
        ("pros and cons of React vs Vue", "React|Vue"),
        ("React vs Vue pros and cons", "React|Vue"),
        ("performance of MySQL vs PostgreSQL", "MySQL|PostgreSQL"),
        # What asks, before the first side
        ("When should I use Kafka vs RabbitMQ?", "Kafka|RabbitMQ"),
        ("How much does EC2 vs Lambda cost?", "EC2|Lambda"),
        ("How many hit points does a troll vs an ogre have?", "troll|ogre"),
        ("Should I use Postgres vs MySQL?", "Postgres|MySQL"),
        # X differs from Y, X is better than Y, X over Y
        ("How does TCP differ from UDP?", "TCP|UDP"),
        ("How is TCP different from UDP?", "TCP|UDP"),
        ("How do TCP and UDP differ?", "TCP|UDP"),
        ("What distinguishes a wraith from a wight?", "wraith|wight"),
        ("How do I choose between Kafka and RabbitMQ?", "Kafka|RabbitMQ"),
        ("Does Java run faster than Python?", "Java|Python"),
        ("Does coffee have more caffeine than tea?", "coffee|tea"),
        ("Is a cat a better pet than a dog?", "cat|dog"),
        ("How much faster is an SSD than an HDD?", "SSD|HDD"),
        ("Why choose Rust over Go?", "Rust|Go"),
        ("Why would I use a tuple instead of a list?", "tuple|list"),
        # X or Y
        ("Should I learn Python or R for data analysis?", "Python|R"),
        ("Should beginners learn Python or Java?", "Python|Java"),
        ("Which is more expensive gold or silver?", "gold|silver"),
        ("which is better canon or nikon", "canon|nikon"),
        ("Is coffee or tea better for you?", "coffee|tea"),
        ("Which of Java and Python is faster?", "Java|Python"),
        ("coffee or tea: which is healthier?", "coffee|tea"),
        ("MySQL and PostgreSQL: what is the difference?", "MySQL|PostgreSQL"),
        ("Java and C#, which is easier to learn?", "Java|C#"),
        ("Python and R - which is better for statistics?", "Python|R"),
        ("Ruby or Python?", "Ruby|Python"),
        ("VS Code or IntelliJ?", "VS Code|IntelliJ"),
        ("Is it healthier to eat rice or pasta?", "rice|pasta"),
        ("Is it more ethical to eat fish or chicken?", "fish|chicken"),
        ("In what ways do frogs differ from toads?", "frogs|toads"),
        ("In which respects do TCP and UDP differ?", "TCP|UDP"),
        ("At what size does B-tree vs hash index matter?", "B-tree|hash index"),
        ("At which point does SQL vs NoSQL become important?", "SQL|NoSQL"),
        ("Python v. Ruby", "Python|Ruby"),
        # X over Y: two names of one form, and neither a time, a place nor a medium
        ("Are there advantages to using tabs over spaces?", "tabs|spaces"),
        ("What does Postgres have over MySQL?", "Postgres|MySQL"),
        ("What benefits does tea have over coffee?", "tea|coffee"),
        ("Does Kotlin have any advantages over Java?", "Kotlin|Java"),
        ("Why choose a laptop over a desktop?", "laptop|desktop"),
        ("benefits of walking over driving", "walking|driving"),
        ("Why use gRPC over REST?", "gRPC|REST"),
        # Only a sign tells them apart
        ("C vs C-", "C|C-"),
        ("A+ vs A-", "A+|A-"),
        ("Yahoo! vs Yahoo", "Yahoo!|Yahoo"),
        ("-O2 vs -O3", "-O2|-O3"),
        ("--force vs --force-with-lease", "--force|--force-with-lease"),
        ("$PATH vs PATH", "$PATH|PATH"),
        # Where a side begins and ends
        ("SQL vs NoSQL scalability and cost", "SQL|NoSQL"),
        ("React vs Vue bundles and performance", "React|Vue"),
        ("What are the security implications of OAuth vs API keys?", "OAuth|API keys"),
        ("What is the time complexity of quicksort vs mergesort?", "quicksort|mergesort"),
        ("What is the Staff of Power vs a wand?", "Staff of Power|wand"),
        ("What is the staff of power vs a wand?", "staff of power|wand"),
        ("Why is Rust vs Go such a popular debate?", "Rust|Go"),
        ("Why is nature vs nurture important?", "nature|nurture"),
        ("Is Mandarin harder than Cantonese to learn?", "Mandarin|Cantonese"),
        ("Should I use Python or R to build dashboards?", "Python|R"),
        ("Should I learn Python first or C++?", "Python|C++"),
        ("Should I try React first, or Vue?", "React|Vue"),
        ("breadth first vs depth first", "breadth first|depth first"),
        ("Is coffee healthier than tea or the other way round?", "coffee|tea"),
        ("Is coffee healthier than tea or juice?", "coffee|tea|juice"),
        ("When did Batman v. Superman come out?", "Batman|Superman"),
        ("Should I read the manual or the warranty before I start?", "manual|warranty"),
        ("Is the troll stronger than the ogre?", "troll|ogre"),
        ("US vs UK", "US|UK"),
    ],
)
def test_comparisons(query: str, expected: str) -> None:
    assert detect(query) == tuple(expected.split("|"))


@pytest.mark.parametrize(
    "query",
    [
        "",
        "vs",
        "vs.",
        "X vs",
        "vs Y",
        "versus versus versus",
        "compare",
        "compare their strength",
        "What's the difference?",
        "fighter vs Fighter",
        FIGHTERS,
        "what is armor class or ac",
        "is it true or false",
        "What is better, yes or no?",
        "What happens if I am hit, dead or alive?",
        "either",
        "Tell me about owlbears",
        "black or white magic?",
        "Hill giant or troll?",
        "What is the AC of a troll, or its hit dice?",
        "What lies between the Keep and the Caves?",
        "What do I compare my roll to and when?",
        "How do I turn undead: by level or by table?",
        "I have a strength of 17. What are my bonuses, to hit or damage?",
        "A 7th level cleric is attacking an opponent with armor class 6. What must he roll to hit?",
        "troll vs one two three four five six seven eight nine ten eleven twelve thirteen",
        "troll vs " + "x" * 81,
        "troll vs ???",
        "Is a low armor class better or worse than a high one?",
        "Is an armor class lower than 0 possible?",
        "Is there anything better than a sword?",
        "Is it better to flee than to fight?",
        "Why did my campaign spend more than its daily budget?",
        "Why is my request slower than before?",
        "What happens if a spell hits more than one target?",
        "Can a cleric use a sword or a mace?",
        "Do I lose hit points or levels when I am drained?",
        "Should I buy a house or rent?",
        "Should I learn Java or study law?",
        "Should I take the bus or walk?",
        "Who supports them - government, business, universities, or libraries?",
        "Does it take the form of an agency or center, which distributes results?",
        "Each of the documents is compared to the query.",
        "Results compare favourably with feedback",
        "When did Kramer vs Kramer come out?",
        "What are the benefits of voting over the phone?",
        "When do I get paid over the holidays?",
        "Why use encryption over public networks?",
        "Why use encryption over email?",
        "Why use a VPN over public WiFi?",
        "When should I take a taxi over the bridge?",
        "What are the benefits of talking over problems?",
        "What are the advantages of paying over several months?",
        "What power does the president have over Congress?",
        "Should I buy insurance over age 60?",
        "Why switch jobs over money?",
        "Is the deductible higher than last year?",
        "Why is the bill higher than the estimate?",
        "Why is the output longer than the input?",
        "Is the fee larger than the limit?",
        "Is a claim older than the statute of limitations valid?",
        "Is damage higher than the hit points fatal?",
        "Is anyone better than me at chess?",
        "Is everybody smarter than him?",
        "Which documents do I need, passport or otherwise?",
    ],
)
def test_no_comparisons(query: str) -> None:
    assert detect(query) == ()


# The topics of Touché 2020, shared task 2 ("comparative questions"), and the sides of those that
# compare: https://touche.webis.de/clef20/touche20-web
TOUCHE = """
What is the difference between sex and love? sex|love
Which is better, a laptop or a desktop? laptop|desktop
Which is better, Canon or Nikon? Canon|Nikon
What are the best dish detergents?
What are the best cities to live in?
What is the longest river in the U.S.?
Which is healthiest: coffee, green tea or black tea and why? coffee|green tea|black tea
What are the advantages and disadvantages of PHP over Python and vice versa? PHP|Python
Why is Linux better than Windows? Linux|Windows
How to sleep better?
Should I buy an LCD TV or a plasma TV? LCD TV|plasma TV
Train or plane? Which is the better choice? Train|plane
What is the highest mountain on Earth?
Should one prefer Chinese medicine or Western medicine? Chinese medicine|Western medicine
What are the best washing machine brands?
Should I buy or rent? buy|rent
Do you prefer cats or dogs, and why? cats|dogs
What is the better way to grill outdoors: gas or charcoal? gas|charcoal
Which is better, MAC or PC? MAC|PC
What is better: to use a brush or a sponge? brush|sponge
Which is better, Linux or Microsoft? Linux|Microsoft
Which is better, Pepsi or Coke? Pepsi|Coke
What is better, Google search or Yahoo search? Google search|Yahoo search
Which one is better, Netflix or Blockbuster? Netflix|Blockbuster
Which browser is better, Internet Explorer or Firefox? Internet Explorer|Firefox
Which is a better vehicle: BMW or Audi? BMW|Audi
Which one is better, an electric stove or a gas stove? electric stove|gas stove
What planes are best, Boeing or Airbus? Boeing|Airbus
Which is better, Disneyland or Disney World? Disneyland|Disney World
Should I buy an Xbox or a PlayStation? Xbox|PlayStation
Which has more caffeine, coffee or tea? coffee|tea
Which is better, LED or LCD Reception Displays? LED|LCD Reception Displays
What is better: ASP or PHP? ASP|PHP
What is better for the environment, a real or a fake Christmas tree? real|fake Christmas tree
Do you prefer tampons or pads? tampons|pads
What IDE is better for Java: NetBeans or Eclipse? NetBeans|Eclipse
Is OpenGL better than Direct3D in terms of portability to different platforms? OpenGL|Direct3D
What are the differences between MySQL and PostgreSQL in performance? MySQL|PostgreSQL
Is Java code more readable than code written in Scala? Java code|code written in Scala
Which operating system has better performance: Windows 7 or Windows 8? Windows 7|Windows 8
Which smartphone has a better battery life: Xperia or iPhone? Xperia|iPhone
Which four wheel truck is better: Ford or Toyota? Ford|Toyota
Should I prefer a Leica camera over Nikon for portrait photographs? Leica camera|Nikon
Which company has a larger capitalization: Apple or Microsoft? Apple|Microsoft
Which laptop has a better durability: HP or Dell? HP|Dell
Which beverage has more calories per glass: beer or cider? beer|cider
Is admission rate in Stanford higher than that of MIT? Stanford|MIT
Is pasta healthier than pizza? pasta|pizza
Which city is more expensive to live in: San Francisco or New York? San Francisco|New York
Whose salary is higher: basketball or soccer players? basketball|soccer players
"""


@pytest.mark.parametrize("topic", TOUCHE.strip().splitlines())
def test_public_topics(topic: str) -> None:
    query, _, sides = topic.rpartition("?")
    assert detect(f"{query}?") == tuple(filter(None, sides.strip().split("|")))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
            {"fighter": "who wins: 4th level fighter (ac 3) vs",
             "druid": " 7th level druid (ac 9)?"},
        ),
        (
            "Which is better, a Fighter with a shield or a druid or a thief of level 2?",
            {"Fighter": "which is better, a fighter with a shield or", "druid": " a druid or",
             "thief of level 2": " a thief of level 2?"},
        ),
        ("compare a strong troll to an ogre", {"strong troll": "compare a strong troll to",
                                               "ogre": " an ogre"}),
        (FIGHTERS, {}),
        ("How do trolls regenerate?", {}),
    ],
)  # fmt: skip
def test_what_the_query_says_of_each_side(query: str, expected: dict[str, str]) -> None:
    assert parts(query) == expected


@pytest.mark.parametrize(
    "piece",
    ["vs ", "compare ", "a or ", "which is best, a b or ", "(", "who would win ", ", ", " ", "x"],
)
def test_a_megabyte_is_read_in_linear_time(piece: str) -> None:
    query = piece * (1_000_000 // len(piece))
    with ends_soon():
        detect(query)


FILLERS = ["a", "an", "the", "of", "in", "is", ",", ":", "-", "?", ".", "(", ")", "fight", "3rd"]
SIGNALS = ["vs", "vs.", "versus", "compare", "and", "with", "to", "or", "which", "what", "between"]
SIGNALS += ["VS", "than", "better", "over", "should I use", "for", "performance", "does"]
NAMES = ["troll", "ogre", "giant", "X", "who would win", "difference between"]
NAMES += ["C++", ".NET", "iPhone 15", "16"]
WORDS = st.sampled_from(FILLERS + SIGNALS + NAMES)


@example("SHOULD I 0 VS")
@given(st.one_of(st.text(), st.lists(WORDS, max_size=30).map(" ".join)))
def test_law_names_are_short_distinct_parts_of_the_query(query: str) -> None:
    found = detect(query)
    assert len(found) != 1
    assert len({name.casefold() for name in found}) == len(found)
    for name in found:
        assert name == name.strip()
        assert len(name.split()) <= MAX_WORDS
        assert 0 < len(name) <= MAX_CHARS
        assert set(name.split()) <= set(_pieces(query))


def _pieces(query: str) -> set[str]:
    """Every run of characters within a word, as if names could be cut anywhere."""
    return {
        word[i:j]
        for word in query.split()
        for i in range(len(word))
        for j in range(i + 1, len(word) + 1)
    }


@pytest.mark.parametrize(
    ("entity", "title", "text", "by_title", "by_text"),
    [
        ("troll", "TROLL", "", True, True),
        ("trolls", "Troll", "", True, True),
        ("Troll", "Lair of the trolls", "", True, True),
        ("hill giants", "Giant: Hill Giant", "", True, True),
        ("hill giant", "Hill-Giant (lesser)", "", True, True),
        ("black dragon", "Dragon, Black", "", True, True),
        ("black dragon", "Dragon, Red", "", False, False),
        ("troll", "Ogre", "Its cousin is the troll's mother.", False, True),
        ("troll", "Trollop", "controlled trolling", False, False),
        ("bear", "Owlbear", "an owlbear", False, False),
        ("giant hill", "Hill Giant", "", False, False),
        ("hill giant", "Hill", "giant", False, False),
        ("wolves", "Wolf", "", True, True),
        ("harpy", "Harpies", "", True, True),
        ("lich", "Liches of old", "", True, True),
        ("knife", "Knives", "", True, True),
        ("swordsmen", "Swordsman", "", True, True),
        ("armor class 3", "Armor class 30", "", False, False),
        ("ＴＲＯＬＬ", "troll", "", True, True),
        ("", "Troll", "troll", False, False),
        ("!", "Troll", "troll", False, False),
        ("C", "C memory", "", True, True),
        ("C", "C++ streams", "C++11, C# and CS", False, False),
        ("C++", "C streams", "Is it C+?", False, False),
        ("C++", "Modern C++11", "", True, True),
        ("C#", "C# basics", "", True, True),
        (".NET", "Nets", "The net of ASP.NET", False, False),
        (".NET", "Intro to .NET", "", True, True),
        ("NET", ".NET", "Over the net.", False, True),
        ("A*", "A", "A* search", False, True),
        ("troll", "Ogres", "A **troll** heals.", False, True),
        ("B tree", "B+ tree", "", False, False),
        ("armor class -1", "Armor class 1", "Armor class −1", False, True),
        ("armor class 1", "Armor class −1", "", False, False),
        ("10 13", "Wisdom 10–13", "", True, True),
        ("iPhone 5", "iPhone 5s", "", False, False),
        ("R", "Rust", "Rs", False, False),
        ("Go", "GoLand", "It goes on.", False, False),
        ("PATH", "$PATH", "Set PATH.", False, True),
        ("$PATH", "PATH", "Set $PATH.", False, True),
        ("-O2", "O2", "gcc -O2", False, True),
        ("A-", "A", "an A-, or so", False, True),
        ("A", "A-", "A- or B", False, False),
        ("Yahoo!", "Yahoo", "Yahoo! Mail", False, True),
        ("==", "===", "a != b", False, False),
        ("==", "The `==` operator", "", True, True),
        ("driver's license", "Driver’s licenses", "", True, True),
    ],
)
def test_names(entity: str, title: str, text: str, by_title: bool, by_text: bool) -> None:
    assert title_names(entity, title) == by_title
    assert (by_title or names(entity, text)) == by_text


@pytest.mark.parametrize(
    ("entity", "title", "same"),
    [
        ("lights", "Light", True),
        ("light", " LIGHT: ", True),
        ("light", "Continual Light", False),
        ("black dragon", "Dragon, Black", True),
        ("hill giant", "Hill-Giant", True),
        ("", "", False),
        ("C", "C++", False),
        ("C++", "C++", True),
        ("A*", "A*", True),
        (".NET", ".NET", True),
        ("Yahoo!", "Yahoo!", True),
        ("A-", "A-", True),
        ("PL/SQL", "PL/SQL", True),
        ("iPhone 15 Pro", "iPhone 15 Pro Max", False),
    ],
)
def test_title_is(entity: str, title: str, same: bool) -> None:
    assert title_is(entity, title) == same


@pytest.mark.parametrize(
    ("query", "name", "expected"),
    [
        ("Rails vs Flask in prod", "Flask", ("Flask in prod", "Flask")),
        ("X vs PostgreSQL performance", "PostgreSQL", ("PostgreSQL performance", "PostgreSQL")),
        ("x vs postgres costs", "postgres costs", ("postgres costs", "postgres")),
        ("troll vs hill giant", "hill giant", ("hill giant",)),
        ("troll or ogre", "ogre", ("ogre",)),
    ],
)
def test_readings(query: str, name: str, expected: tuple[str, ...]) -> None:
    assert readings(query, name) == expected


@pytest.mark.parametrize(
    ("query", "sides"),
    [
        ("hill giant or troll", ("hill giant", "troll")),
        ("Hill giant or a troll?", ("Hill giant", "troll")),
        ("orc, ogre, or troll", ("orc", "ogre", "troll")),
        ("black or white magic?", ("black", "white magic")),
        ("troll or Troll", ()),
        ("a troll", ()),
        ("Is it a troll or an ogre?", ()),
        ("What is a troll or an ogre", ()),
        ("a troll. or an ogre", ()),
        ("true or false", ()),
        ("troll or " + "x" * 81, ()),
        ("or", ()),
        ("", ()),
    ],
)
def test_what_is_nothing_but_x_or_y(query: str, sides: tuple[str, ...]) -> None:
    assert alternatives(query) == sides
