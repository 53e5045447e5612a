package cell

import (
	"os"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const tail = " S 10 20 20 0 -1 4194560 100 200 0 0 11 12 13 14 20 0 1 0 5 6 7"
	for name, c := range map[string]struct {
		text string
		want procStat
		says string
	}{
		"times and parent are found":         {"42 (postgres)" + tail, procStat{10, 23, 27}, ""},
		"a name may hold blanks":             {"42 (a b c)" + tail, procStat{10, 23, 27}, ""},
		"a name may hold brackets":           {"42 (a) (b)" + tail, procStat{10, 23, 27}, ""},
		"a line that is cut is refused":      {"42 (postgres) S 10 20", procStat{}, "3 fields"},
		"a figure that is none is refused":   {"42 (postgres)" + strings.Replace(tail, "11", "x", 1), procStat{}, "invalid syntax"},
		"a line without a name is refused":   {"", procStat{}, "0 fields"},
		"negative child times are as told":   {"42 (postgres)" + strings.Replace(tail, "13 14", "-1 0", 1), procStat{10, 23, -1}, ""},
		"large times fit beyond 32 bits too": {"42 (postgres)" + strings.Replace(tail, "11 12", "4294967296 1", 1), procStat{10, 4294967297, 27}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseStat(c.text)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("error %v does not say %q", err, c.says)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestOwnProcessHasAParent(t *testing.T) {
	t.Parallel()
	got, err := readStat("self")
	if err != nil {
		t.Fatal(err)
	}
	if got.parent != os.Getppid() {
		t.Errorf("parent %d, want %d", got.parent, os.Getppid())
	}
}
