package scrub

import (
	"net/netip"
	"strings"
)

// longestAddress is the length of the longest address, without its zone.
const longestAddress = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

// addressBytes are the characters of addresses.
var addressBytes = classOf(digits + "abcdefABCDEF:")

// addresses adds the addresses of hosts. The machine's own addresses and versions of programs do not count.
func addresses(s string, found []span) []span {
	for i := 0; i < len(s); i++ {
		if !addressBytes[s[i]] {
			continue
		}
		end, dots, colons := i, 0, 0
		for ; end < len(s) && (addressBytes[s[end]] || s[end] == '.'); end++ {
			switch s[end] {
			case '.':
				dots++
			case ':':
				colons++
			}
		}
		if dots >= 3 || colons >= 2 {
			found = addressesIn(s, i, end, found)
		}
		i = end
	}
	return found
}

// addressesIn adds the addresses in a stretch of the characters of addresses. An address may also fill only its
// beginning.
func addressesIn(s string, start, end int, found []span) []span {
	for at := start; at < end; at++ {
		if !beginsAddress(s, at) {
			continue
		}
		stop, ok := ipv4End(s, at)
		if !ok {
			stop, ok = ipv6End(s, at, end)
		}
		if ok && !isVersion(s, at) {
			found = append(found, span{at, stop, IP, "ip"})
			at = stop
		}
	}
	return found
}

// beginsAddress reports whether an address may begin at a place: not in a word, and not in a name such as
// v-1.2.3.4.
func beginsAddress(s string, at int) bool {
	if wordBefore(s, at) {
		return false
	}
	if at == 0 {
		return true
	}
	switch s[at-1] {
	case '.':
		return false
	case ':':
		return isDigit(s[at]) // behind a name or a scheme, not inside an address
	case '-': // between two addresses
		return at >= 2 && isDigit(s[at-2])
	}
	return true
}

// ipv4End returns the end of the dotted address that begins at a place.
func ipv4End(s string, at int) (end int, ok bool) {
	i := at
	for part := range 4 {
		n := i
		for n < len(s) && n < i+4 && isDigit(s[n]) {
			n++
		}
		if n == i || n == i+4 || part < 3 && (n >= len(s) || s[n] != '.') {
			return 0, false
		}
		if i = n; part < 3 {
			i++
		}
	}
	if wordAt(s, i) || i+1 < len(s) && s[i] == '.' && isWord(s[i+1]) {
		return 0, false
	}
	return i, isHost(s[at:i])
}

// ipv6End returns the end of the address with colons that begins at a place of a stretch.
func ipv6End(s string, at, end int) (int, bool) {
	if end-at > longestAddress+2 {
		return 0, false
	}
	stop := end
	for stop > at && (s[stop-1] == '.' || s[stop-1] == ':' && !strings.HasSuffix(s[at:stop], "::")) {
		stop--
	}
	part := s[at:stop]
	if len(part) < shortest || !strings.Contains(part, "::") && strings.Count(part, ":") < 6 || wordAt(s, stop) || isBytes(part) || !isHost(part) {
		return 0, false
	}
	return stop, true
}

// isBytes reports whether a text is a row of eight bytes, as in a dump or the name of a device, not an address.
func isBytes(part string) bool {
	return len(part) == 23 && strings.Count(part, ":") == 7 && !strings.Contains(part, "::")
}

func isHost(part string) bool {
	address, err := netip.ParseAddr(part)
	if err != nil || address.IsLoopback() || address.IsUnspecified() || address.IsMulticast() {
		return false
	}
	if address.Is4() {
		return !strings.HasPrefix(part, "255.") && !strings.HasPrefix(part, "0.")
	}
	return strings.ContainsAny(part, digits)
}

// isVersion reports whether the text before a dotted number makes it a version: Chrome/120.0.0.0,
// version=1.2.3.4.
func isVersion(s string, at int) bool {
	before := strings.TrimRight(s[max(0, at-24):at], ` =:"'`)
	if product, is := strings.CutSuffix(before, "/"); is {
		begin := len(product)
		for begin > 0 && isLetter(product[begin-1]) {
			begin--
		}
		return begin < len(product) && product[begin] >= 'A' && product[begin] <= 'Z'
	}
	before = strings.ToLower(before)
	for _, word := range []string{"version", "release", "section", "chapter", "build", " ver", "ver.", "oid"} {
		if strings.HasSuffix(before, word) {
			return true
		}
	}
	return strings.HasSuffix(before, "==") || before == "ver"
}
