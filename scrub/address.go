package scrub

import (
	"net/netip"
	"strings"
)

// addresses finds the addresses of hosts. Those of the machine itself, and versions of programs, are none.
func addresses(text string) []span {
	var found []span
	for i := 0; i < len(text); i++ {
		if !isAddress(text[i]) || i > 0 && (isWord(text[i-1]) || text[i-1] == '.' || text[i-1] == '-') {
			continue
		}
		end := i
		for end < len(text) && (isAddress(text[end]) || text[end] == '.') {
			end++
		}
		if stop, ok := addressEnd(text, i, end); ok {
			found = append(found, span{i, stop, IP, "ip"})
			end = stop
		}
		i = max(i, end-1)
	}
	return found
}

func isAddress(c byte) bool {
	return c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// addressEnd says where the address ends that may be in a stretch of text: before a port, or a full stop.
func addressEnd(text string, start, end int) (int, bool) {
	whole := text[start:end]
	for _, part := range []string{strings.TrimRight(whole, ".:"), beforePort(whole)} {
		stop := start + len(part)
		if len(part) < 6 || stop < len(text) && isWord(text[stop]) {
			continue
		}
		if address, err := netip.ParseAddr(part); err == nil && isHost(address, part) {
			return stop, true
		}
	}
	return 0, false
}

func beforePort(text string) string {
	if strings.Count(text, ":") == 1 {
		text, _, _ = strings.Cut(text, ":")
	}
	return strings.TrimRight(text, ".:")
}

func isHost(address netip.Addr, text string) bool {
	if address.IsLoopback() || address.IsUnspecified() || address.IsMulticast() {
		return false
	}
	if address.Is4() {
		return !strings.HasPrefix(text, "255.") && !strings.HasPrefix(text, "0.")
	}
	return strings.ContainsAny(text, "0123456789")
}
