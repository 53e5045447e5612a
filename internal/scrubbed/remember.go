package scrubbed

import (
	"crypto/sha256"
	"sync"
)

// maxRemembered is how many texts are remembered. When much fails, it fails alike, and the same
// text is stored and logged.
const maxRemembered = 256

// remembered returns clean with a memory of recent texts, so that it runs once for each. The memory
// holds only cleaned texts, not the originals.
func remembered(clean func(string) string) func(string) string {
	var mu sync.Mutex
	known := make(map[[sha256.Size]byte]string)
	return func(text string) string {
		if text == "" {
			return ""
		}
		sum := sha256.Sum256([]byte(text))
		mu.Lock()
		was, is := known[sum]
		mu.Unlock()
		if is {
			return was
		}
		cleaned := clean(text)
		mu.Lock()
		defer mu.Unlock()
		if len(known) >= maxRemembered {
			clear(known)
		}
		known[sum] = cleaned
		return cleaned
	}
}
