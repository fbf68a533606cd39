# units.awk - sluice-batch: numbers for people.
#   amount(LIMIT)   a limit, as for sbatch, as a number: bytes, or a time in seconds
#   human(X)        three digits and k, M, G, T or P, for powers of 1000
#   clock(SECONDS)  as "3 h 20 min"
function amount(v,    f, n) {
    n = split(v, f, /[-:]/)
    return v ~ /[KMGT]$/ ? v * 1024 ^ index("KMGT", substr(v, length(v))) : \
        v ~ /-/ ? (f[1] * 24 + f[2]) * 3600 + f[3] * 60 + f[4] : n == 3 ? f[1] * 3600 + f[2] * 60 + f[3] : f[1] * 60 + f[2]
}
function human(x,    u) {
    u = 0
    while (x >= 1000 && u < 5) { x /= 1000; u++ }
    return (u && x < 100 ? sprintf("%.1f", x) : sprintf("%d", x)) substr(" kMGTP", u + 1, u > 0)
}
function clock(x) {
    return x >= 86400 ? sprintf("%d d %d h", x / 86400, x % 86400 / 3600) : \
        x >= 3600 ? sprintf("%d h %d min", x / 3600, x % 3600 / 60) : x >= 60 ? sprintf("%d min", x / 60) : sprintf("%d s", x)
}
