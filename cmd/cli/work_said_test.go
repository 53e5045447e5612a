package cli_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice/cmd/cli"
)

func TestLinesThatAProgramSays(t *testing.T) {
	t.Parallel()
	var lines []string
	w, end := cli.SaidLines(func(line string, cut int) {
		lines = append(lines, fmt.Sprint(len(line), " ", cut, " ", line[:min(len(line), 12)]))
	})
	for _, part := range []string{"one\ntw", "o\n\n\r\n", "\x9b\u202eend", "\n"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 { // the chunks contain no line end
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write([]byte("\nrest")); err != nil {
		t.Fatal(err)
	}
	end()
	end()
	want := []string{"3 0 one", "3 0 two", "8 0 \ufffd·end", fmt.Sprintf("%d %d xxxxxxxxxxxx", 16<<10, 64<<20-16<<10), "4 0 rest"}
	if !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
}
