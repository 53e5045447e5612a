package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// TestNothingPrintedSteersTheTerminal prints U+009B, which begins an escape sequence, and characters that reverse or
// hide text.
func TestNothingPrintedSteersTheTerminal(t *testing.T) {
	t.Parallel()
	const text = "acme\u009b31m \u202elive\u200b \U000e0041 \x7f é 日"
	plain, err := json.Marshal(map[string]string{"tenant": text})
	if err != nil {
		t.Fatal(err)
	}
	printed := cli.EscapeUnseen(plain)
	if want := `{"tenant":"acme\u009b31m \u202elive\u200b \udb40\udc41 \u007f é 日"}`; string(printed) != want {
		t.Errorf("printed %q, want %q", printed, want)
	}
	var back map[string]string
	if err := json.Unmarshal(printed, &back); err != nil || back["tenant"] != text {
		t.Errorf("it is read as %q, %v", back, err)
	}
	if line, want := cli.Detail("tenant", text), "tenant        acme·31m ·live· · · é 日\n"; line != want {
		t.Errorf("the line is %q, want %q", line, want)
	}
}
