package jobline

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// byDecoder reads the members of an object with the standard library's decoder.
func byDecoder(t *testing.T, object string) (all []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(object)))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		all = append(all, name.(string), string(value))
	}
	return all
}

// FuzzMembers: the members of an object are those that the decoder finds. Other texts are refused.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { } `, `{"a":1}`, "{\t\"a\" : 1 ,\r\n \"b\":[ ] }", `{"a":"x\"},{\\","b":{"c":[1,{"d":"]"}],"e":{}},"a":null}`,
		`{"\u0061\n":true,"":-1.5e+3,"b":[false,"[",[[]],{"x":1 , "y" : [ 2 , 3 ]}]}`, `{"a":"\\","b":"\\\"","c":"\u005c"}`, `{"a":""}`, `{"ü":"ü,}"}`,
		``, ` `, `[]`, `{`, `{}}`, `{,}`, `{"a":1,}`, `{"a":1`, `{"a":1 `, `{"a":1]`, `{"a"`, `{"a":`, `{"a":}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`, `{"a":1}x`, `{"a\x":1}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		var all []string
		whole, err := eachMember([]byte(text), func(name string, value json.RawMessage) error {
			all = append(all, name, string(value))
			return nil
		})
		object := json.Valid([]byte(text)) && strings.TrimLeft(text, " \t\r\n")[0] == '{'
		if err != nil || whole != object {
			t.Fatalf("%q is a valid object: %v (%v), want %v", text, whole, err, object)
		}
		if !object {
			return
		}
		if want := byDecoder(t, text); !slices.Equal(all, want) {
			t.Errorf("%q has %q, want %q", text, all, want)
		}
	})
}

// The caller may reuse the memory of a line.
func TestAJobKeepsNothingOfItsLine(t *testing.T) {
	t.Parallel()
	line := []byte(`{"queue":"mail","payload":{"to":"Lovelace"},"tenant":"acme","labels":{"kind":"x"},"delay":"1m"}`)
	job, err := Parse(line, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = '?'
	}
	if string(job.Payload) != `{"to":"Lovelace"}` || job.Queue != "mail" || job.Tenant != "acme" || job.Labels["kind"] != "x" || job.Delay != time.Minute {
		t.Errorf("the job is %+v", job)
	}
}

func BenchmarkParse(b *testing.B) {
	line := []byte(`{"queue":"parcels","payload":{"to":"Lovelace","text":"` + string(bytes.Repeat([]byte("a parcel "), 110)) + `"}}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line, ""); err != nil {
			b.Fatal(err)
		}
	}
}
