package console

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestFilesOfOthersAreAsPublished compares vendored files with the hashes that tools/vendor.sh has written.
func TestFilesOfOthersAreAsPublished(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("vendor.sums")
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if sum, name, is := strings.Cut(strings.TrimSpace(line), "  "); is {
			sums[name] = sum
		}
	}
	entries, err := files.ReadDir("static/vendor")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(sums) {
		t.Errorf("%d files have %d hashes", len(entries), len(sums))
	}
	for _, entry := range entries {
		file, err := files.ReadFile("static/vendor/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != sums[entry.Name()] {
			t.Errorf("%s is not as tools/vendor.sh has got it; run `make vendor`", entry.Name())
		}
	}
}
