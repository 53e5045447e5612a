package testcache

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolderIsMadeWithAndWithoutAHome(t *testing.T) {
	home, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for where, want := range map[string]string{home: home, "": temporary} {
		t.Setenv("XDG_CACHE_HOME", where)
		t.Setenv("HOME", where)
		folder, err := Folder()
		if err != nil {
			t.Fatal(err)
		}
		if under, err := filepath.Rel(want, folder); err != nil || !filepath.IsLocal(under) {
			t.Errorf("the folder is %s; want one in %s", folder, want)
		}
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
	}
}
