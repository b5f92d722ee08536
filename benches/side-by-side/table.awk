# Raw numbers of benches/side-by-side/run as Markdown: awk -F, -f table.awk raw.csv memory.csv
# Every figure is the median of the rounds; behind it, in brackets, the least and the greatest.

# Sorts values[1..count] in place.
function sort(values, count,    i, j, value) {
    for (i = 2; i <= count; i++) {
        value = values[i]
        for (j = i - 1; j > 0 && values[j] > value; j--) values[j + 1] = values[j]
        values[j + 1] = value
    }
}

# The median of a figure, with its spread when `spread`.
function figure(name, key, format, spread,    i, count, values, middle) {
    count = rounds[key]
    if (!count) return "—"
    for (i = 1; i <= count; i++) values[i] = numbers[name, key, i]
    sort(values, count)
    middle = count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
    if (!spread) return sprintf(format, middle)
    return sprintf(format " (" format "–" format ")", middle, values[1], values[count])
}

function remember(list, seen, value) {
    if (!(value in seen)) {
        seen[value] = 1
        list[++list[0]] = value
    }
}

FNR == 1 { file++; next }

file == 1 {
    remember(rules, seen_rules, $1)
    remember(scenarios, seen_scenarios, $2)
    seen_proxies[$4] = 1
    key = $1 SUBSEP $2 SUBSEP $4
    round = ++rounds[key]
    numbers["cpu", key, round] = $6 / $5
    numbers["rate", key, round] = $5 * 1000000 / $7
    numbers["p50", key, round] = $8
    numbers["p99", key, round] = $9
    numbers["rss", key, round] = $10 / 1024
}

file == 2 {
    remember(memory_rules, seen_memory_rules, $1)
    fresh[$1, $2] = $3; before[$1, $2] = $4; idle[$1, $2] = $5
}

END {
    all = split("pingora crawlgate-events crawlgate crawlgate-state crawlgate-store crawlgate-evidence nginx-plain nginx-best nginx-usual nginx-return haproxy", known, " ")
    # Some are measured on demand alone.
    for (p = 1; p <= all; p++)
        if (known[p] !~ /-(state|store|evidence)$/ || known[p] in seen_proxies) proxies[++count] = known[p]
    for (r = 1; r <= rules[0]; r++) {
        printf "\n### %s path rules\n\nProcessor time per request in µs, median:\n\n|", rules[r]
        for (p = 1; p <= count; p++) printf " | %s", proxies[p]
        printf " |\n|---|"
        for (p = 1; p <= count; p++) printf "---:|"
        print ""
        for (s = 1; s <= scenarios[0]; s++) {
            printf "| %s", scenarios[s]
            for (p = 1; p <= count; p++) printf " | %s", figure("cpu", rules[r] SUBSEP scenarios[s] SUBSEP proxies[p], "%.1f", 0)
            print " |"
        }
        print "\nEverything, median (least–greatest):\n"
        print "| scenario | proxy | µs of processor per request | requests/s | p50 µs | p99 µs | RSS MiB |"
        print "|---|---|---:|---:|---:|---:|---:|"
        for (s = 1; s <= scenarios[0]; s++) for (p = 1; p <= count; p++) {
            key = rules[r] SUBSEP scenarios[s] SUBSEP proxies[p]
            if (!rounds[key]) continue
            printf "| %s | %s | %s | %s | %s | %s | %s |\n", scenarios[s], proxies[p], figure("cpu", key, "%.1f", 1),
                figure("rate", key, "%.0f", 1), figure("p50", key, "%.0f", 1), figure("p99", key, "%.0f", 1),
                figure("rss", key, "%.1f", 0)
        }
    }
    if (!memory_rules[0]) exit
    print "\n### Memory\n\nResident MiB just started, and KiB more per idle connection (kept after one request):\n"
    print "| rules | proxy | started MiB | KiB per idle connection |\n|---:|---|---:|---:|"
    for (r = 1; r <= memory_rules[0]; r++) for (p = 1; p <= count; p++) {
        key = memory_rules[r] SUBSEP proxies[p]
        printf "| %s | %s | %.1f | %.1f |\n", memory_rules[r], proxies[p], fresh[key] / 1024, (idle[key] - before[key]) / connections
    }
}
