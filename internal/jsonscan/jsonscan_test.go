package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/jsonscan"
)

var seeds = []string{
	``, ` `, `{}`, ` [ ] `, `null`, `nul`, `nulll`, `true`, `false`, `"a"`, `"a`, `"\"`, `"\u00e4\/\b"`, `"\u00g4"`, `"\u00`, `"\x"`, "\"a\nb\"", "\"\xff\"", "\"\x7f\"",
	`0`, `-0.5e+10`, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1E-`, `1 2`, `[1,2 , {"a" : [ ]}]`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`,
	`{"text":"seven..","eight":"eight...","\\":"\\\\\"","n":[1.5,-2,3e9,true,false,null]}`, "\t\r\n {\"a\"\t:\r\n1} \n", "\v1", "{}\x00", `"12345678\"`, `"1234567"8"`,
}

func same(t *testing.T, text []byte) {
	t.Helper()
	if got, want := jsonscan.Valid(text), json.Valid(text); got != want {
		t.Errorf("%.200q: valid is %v, by encoding/json %v", text, got, want)
	}
}

func FuzzValid(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(same)
}

// The texts are longer than the bytes that the check reads together. Each byte value replaces each byte of a text.
func TestEachByteIsTakenOrRefusedAsByTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":"0123456789abcdefghij","n":-12.5e+3}`, `["\u00e4\\",[true,null],0]`} {
		for at := range text {
			for c := range 256 {
				changed := []byte(text)
				changed[at] = byte(c)
				same(t, changed)
			}
			same(t, []byte(text[:at]))
		}
	}
}

func TestValuesAreNestedAsDeepAsByTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{9_999, 10_000, 10_001, 1_000_000} {
		same(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		same(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
}

func TestFaultsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	lists := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	objects := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	many := "[" + strings.Repeat("[{}],", jsonscan.MaxDepth) + "[]]"
	for _, c := range []struct {
		text, want string
		shallow    bool
	}{
		{lists(jsonscan.MaxDepth), "", true},
		{objects(jsonscan.MaxDepth), "", true},
		{many, "", false},
		{`"` + strings.Repeat("-", 3*jsonscan.MaxDepth) + `"`, "", true},
		{lists(jsonscan.MaxDepth + 1), "it is nested deeper than 500 levels", false},
		{objects(jsonscan.MaxDepth + 1), "it is nested deeper than 500 levels", false},
		{lists(9_000), "it is nested deeper than 500 levels", false},
		{lists(10_001), "it is not valid JSON: invalid character '[' exceeded max depth", false},
		{`{"a":`, "it is not valid JSON: unexpected end of JSON input", true},
		{"1 2", "it is not valid JSON: invalid character '2' after top-level value", true},
	} {
		if got := jsonscan.Fault([]byte(c.text)); got != c.want {
			t.Errorf("%.40q: %q, want %q", c.text, got, c.want)
		}
		if got := jsonscan.Shallow([]byte(c.text)); got != c.shallow {
			t.Errorf("%.40q: shallow is %v", c.text, got)
		}
	}
}

func BenchmarkValid(b *testing.B) {
	text := []byte(`{"to":"Lovelace","text":"` + string(bytes.Repeat([]byte("a parcel "), 110)) + `"}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !jsonscan.Valid(text) {
			b.Fatal("it is not valid")
		}
	}
}
