package reference_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-queue/sluice/apps/conversations/reference"
)

func TestSecretsAreReadByReference(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REFERENCE_TEST_KEY", "def")
	for ref, want := range map[string]string{"file:" + file: "abc", "env:REFERENCE_TEST_KEY": "def", "env:REFERENCE_TEST_NONE": "", "file:" + file + "x": "", "abc": "", "": "", "http://x": ""} {
		got, err := reference.Secret(ref)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", ref, got, err)
		}
	}
}
