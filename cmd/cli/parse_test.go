package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestJobLineSaysAllThatMayBeSaidOfAJob(t *testing.T) {
	t.Parallel()
	job, err := cli.ParseJobLine([]byte(`{"queue":"mail","payload":{"to":"ada"},"id":"01a1fb72-1dea-7abc-8fc6-99e4817522bb","tenant":"acme",
		"key":"k","key_scope":"window","key_window":"7d","on_duplicate":"replace","due_at":"2026-12-01T16:00:00+01:00","delay":"90m",
		"priority":2,"expires_at":"2026-12-02T00:00:00Z","labels":{"a":"b"},"max_attempts":4,"timeout":"90s"}`), "other")
	if err != nil {
		t.Fatal(err)
	}
	o := job.EnqueueOptions
	for name, right := range map[string]bool{
		"queue": job.Queue == "mail", "payload": string(job.Payload) == `{"to":"ada"}`, "id": o.ID.String() == "01a1fb72-1dea-7abc-8fc6-99e4817522bb",
		"tenant": o.Tenant == "acme", "key": o.Key == "k", "key_scope": o.KeyScope == sluice.ForWindow, "key_window": o.KeyWindow == 7*24*time.Hour,
		"on_duplicate": o.OnDuplicate == sluice.Replace, "due_at": o.DueAt.Equal(time.Date(2026, 12, 1, 15, 0, 0, 0, time.UTC)),
		"delay": o.Delay == 90*time.Minute, "priority": o.Priority == 2, "expires_at": o.ExpiresAt.Equal(time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)),
		"labels": o.Labels["a"] == "b", "max_attempts": o.MaxAttempts == 4, "timeout": o.Timeout == 90*time.Second,
	} {
		if !right {
			t.Errorf("%s was not read: %+v", name, job)
		}
	}
}

// TestAJobLineRefusesATimeoutOfZero: a setting of zero is no limit, and a job with zero would have one.
func TestAJobLineRefusesATimeoutOfZero(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0s", "0ms", "0"} {
		_, err := cli.ParseJobLine([]byte(`{"queue":"mail","payload":1,"timeout":"`+text+`"}`), "")
		var invalid *sluice.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "timeout" {
			t.Errorf("a timeout of %s: %v", text, err)
		}
	}
	if job, err := cli.ParseJobLine([]byte(`{"queue":"mail","payload":1,"timeout":"1ms"}`), ""); err != nil || job.Timeout != time.Millisecond {
		t.Errorf("a timeout of 1ms: %+v, %v", job, err)
	}
}

// TestAJobLineRefusesTheIDOfZeros: it stands for none, so a job with it would be stored again by each resend.
func TestAJobLineRefusesTheIDOfZeros(t *testing.T) {
	t.Parallel()
	const zeros = `"00000000-0000-0000-0000-000000000000"`
	for field, value := range map[string]string{"id": zeros, "batch": zeros, "after": "[" + zeros + "]"} {
		_, err := cli.ParseJobLine([]byte(`{"queue":"mail","payload":1,"`+field+`":`+value+`}`), "")
		var invalid *sluice.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzParseJobLine: any line is either a job that a store accepts, or an error that names the wrong field.
func FuzzParseJobLine(f *testing.F) {
	for _, seed := range []string{
		`{"payload":{"n":1},"tenant":"acme","key":"a","labels":{"kind":"x"}}`, `{"queue":"other","payload":1,"due_at":"2026-12-01T16:00:00+01:00"}`,
		`{"payload":2,"tenat":"acme"}`, `{"payload":3`, `not json`, ``, `[1]`, `null`, `{}`, `{"payload":null}`, `{"payload":1}{"payload":2}`, `{"payload":1,}`,
		`{"payload":4,"priority":12}`, `{"payload":1,"priority":"high"}`, `{"payload":1,"priority":1e3}`, `{"payload":1,"due_at":"tomorrow"}`,
		`{"payload":1,"due_at":"0000-01-01T00:00:00Z"}`, `{"payload":1,"delay":"1x"}`, `{"payload":1,"delay":"-5s"}`, `{"payload":1,"delay":"106752d"}`,
		`{"payload":1,"id":"xx"}`, `{"payload":1,"labels":{"a":1}}`, `{"payload":1,"labels":{"":"x"}}`, `{"payload":1,"tenant":"a","tenant":"b"}`,
		`{"payload":1,"Tenant":"a"}`, `{"payload":"\u0000"}`, "{\"payload\":1,\"key\":\"\xff\"}", `{"payload":1,"key":"k","key_scope":"window","key_window":"7d"}`,
		`{"payload":1,"max_attempts":-1}`, `{"payload":{"a":1,"a":2}}`, `{"a":{"b":[[[[[]]]]]}}`, `{"payload":1,"id":null,"labels":null,"priority":null}`,
	} {
		f.Add(seed)
	}
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	f.Fuzz(func(t *testing.T, line string) {
		job, err := cli.ParseJobLine([]byte(line), "q")
		if err == nil {
			job.Queue = "q" // without this, each new queue name would only fill the memory
			_, err = client.Enqueue(t.Context(), job)
		}
		var invalid *sluice.InvalidError
		switch {
		case err == nil:
			return
		case !errors.As(err, &invalid):
			t.Fatalf("%q: got the error %v, want an InvalidError", line, err)
		}
		fields := ", " + cli.JobFieldNames() + ", line, "
		if !strings.Contains(fields, ", "+invalid.Field+", ") && !strings.HasPrefix(invalid.Field, `"`) {
			t.Errorf("%q: the error is of the field %q", line, invalid.Field)
		}
		if invalid.Rule == "" || strings.Contains(invalid.Rule, "sluice.") || strings.Contains(invalid.Rule, "Go struct") {
			t.Errorf("%q: the rule is %q", line, invalid.Rule)
		}
	})
}

func TestAddressOfAStore(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ postgres, sqlite string }{
		"sqlite:jobs.db":                   {"", "jobs.db"},
		"sqlite:/var/jobs.db":              {"", "/var/jobs.db"},
		"sqlite:///var/jobs.db":            {"", "/var/jobs.db"},
		"sqlite://jobs.db":                 {"", "jobs.db"},
		"postgres://ada@host/jobs":         {"postgres://ada@host/jobs", ""},
		"postgresql://host/jobs?x=y":       {"postgresql://host/jobs?x=y", ""},
		"":                                 {},
		"sqlite:":                          {},
		"sqlite://":                        {},
		"jobs.db":                          {},
		"host=localhost dbname=jobs":       {},
		"POSTGRES://host/jobs":             {},
		"mysql://ada:secret@host/database": {},
	} {
		postgres, sqlite, err := cli.ParseAddress(text)
		if postgres != want.postgres || sqlite != want.sqlite || (err != nil) != (want.postgres+want.sqlite == "") {
			t.Errorf("%q is %q, %q, %v", text, postgres, sqlite, err)
		}
	}
}

// FuzzParseDB: an address is of one of the two kinds, or an error. No printed text contains its password.
func FuzzParseDB(f *testing.F) {
	for _, seed := range []struct{ before, password, after string }{
		{"postgres://ada", "secret", "host:5432/jobs?sslmode=disable"},
		{"postgres://ada", "p@ss/word", "host/jobs"},
		{"mysql://ada", "se cret", "host"},
		{"postgresql://", "%zz?#", "[::1]/x"},
		{"sqlite:", "secret", "x"},
		{"", "secret", ""},
		{"postgres://a:b@", "two at once", "h?password=x"},
	} {
		f.Add(seed.before, seed.password, seed.after)
	}
	f.Fuzz(func(t *testing.T, before, password, after string) {
		// A word that occurs nowhere else, so a match proves a leak.
		const leak = "hunter2pw"
		text := before + ":" + password + leak + "@" + after
		postgres, sqlite, err := cli.ParseAddress(text)
		if err == nil && (postgres == "") == (sqlite == "") {
			t.Fatalf("%q is %q and %q", text, postgres, sqlite)
		}
		if !strings.Contains(before, "://") {
			return // not a URL, so the text is a path and has no password
		}
		var said strings.Builder
		shown := []string{cli.RedactURL(text)}
		for _, fault := range []error{errors.New("cannot open " + text), err} {
			if fault != nil {
				cli.Explain(text, &said, fault)
			}
		}
		for _, s := range append(shown, said.String()) {
			if strings.Contains(s, leak) {
				t.Errorf("%q is shown as %q", text, s)
			}
		}
	})
}

func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"postgres://ada:secret@host/jobs", "postgres://ada:se@cret@host/jobs", "postgres://ada:se/cret@host/jobs", "postgres://ada:se cret@host:port/jobs",
		"postgres://host/jobs?user=ada&password=secret", "postgres://host/jobs?PASSWORD=secret&x=y", "mysql://ada:secret@host",
		"postgres:/ada:secret@host/jobs", "postgres:ada:secret@host/jobs", "postgresql:/ada:se@cret@host/jobs",
	} {
		for name, shown := range map[string]string{"address": cli.RedactURL(text), "text": cli.Redact("cannot open " + strings.ReplaceAll(text, " ", ""))} {
			if strings.Contains(shown, "cret") {
				t.Errorf("the %s %q is shown as %q", name, text, shown)
			}
		}
	}
	if shown := cli.RedactURL("postgres://ada:secret@host:5432/jobs?sslmode=disable"); shown != "postgres://ada@host:5432/jobs?sslmode=disable" {
		t.Errorf("it is shown as %q", shown)
	}
	for _, typo := range []string{"ada:secret@host/jobs", "postgrs:/ada:secret@host/jobs", "postgres//ada:secret@host/jobs"} {
		if shown := cli.RedactURL(typo); strings.Contains(shown, "secret") {
			t.Errorf("%q is shown as %q", typo, shown)
		}
	}
	if shown := cli.RedactURL("postgres://ada@host/jobs?sslkey=ada.key&sslpassword=secret"); strings.Contains(shown, "secret") {
		t.Errorf("the password of a key is shown as %q", shown)
	}
	if shown := cli.RedactURL("sqlite:/var/jobs.db"); shown != "sqlite:/var/jobs.db" {
		t.Errorf("it is shown as %q", shown)
	}
}

// FuzzOptions: a value that the parser accepts reads back as the same value. The parser refuses all others with a
// reason.
func FuzzOptions(f *testing.F) {
	for _, seed := range []string{
		"500ms", "30s", "5m", "2h", "7d", "-1d", "+07d", "0d", "106752d", "9223372036854775807ns", "1x", "d", "", "1e3s", "∞", "1h30m",
		"2026-12-01T16:00:00Z", "2026-12-01T16:00:00.123456789-07:00", "2026-02-30T00:00:00Z", "2026-12-01", "a=b", "a=", "=b", "a=b=c", "a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := cli.ParseDuration(text); err == nil {
			if again, err := cli.ParseDuration(d.String()); err != nil || again != d {
				t.Errorf("%q is %s, which is %s, %v", text, d, again, err)
			}
			if days, isDays := strings.CutSuffix(text, "d"); isDays && strings.HasPrefix(days, "-") && d > 0 {
				t.Errorf("%q is %s", text, d)
			}
		} else if err.Error() == "" || strings.Contains(err.Error(), "time:") {
			t.Errorf("%q: got the error %q, want one of our own", text, err)
		}
		if at, err := cli.ParseInstant(text); err == nil {
			if again, err := cli.ParseInstant(at.Format(time.RFC3339Nano)); err != nil || !again.Equal(at) {
				t.Errorf("%q is %s, which is %s, %v", text, at, again, err)
			}
		}
		if labels, err := cli.ParseLabels([]string{text}); err == nil {
			for name, value := range labels {
				if name == "" || name+"="+value != text {
					t.Errorf("%q is %v", text, labels)
				}
			}
		}
	})
}

func TestDurationsTooLongForAnyClock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "+07d": 7 * 24 * time.Hour, "-1d": -24 * time.Hour, "0d": 0, "106751d": 106751 * 24 * time.Hour} {
		if d, err := cli.ParseDuration(text); err != nil || d != want {
			t.Errorf("%q is %s, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"106752d", "213504d", "2147483647d", "-106752d", "99999999999999d", "1.5d", "d", "7", "7w"} {
		if d, err := cli.ParseDuration(text); err == nil {
			t.Errorf("%q is %s", text, d)
		}
	}
}

// FuzzParseConfig: a file of profiles has known settings with values, or an error that names a line. No error has a token.
func FuzzParseConfig(f *testing.F) {
	const leak = "hunter2pw" // occurs nowhere else, so a match proves a leak
	for _, seed := range []string{
		"profile = \"prod\"\n\n[prod]\ndb = \"https://HOST\" # remark\ntoken = \"@~/x\"\n", "[a]\ntoken = \"", "[a]\ntoken = ", "[a]\ntoken \"", "[a]\n token=\"\\", "token = \"", "[a]\n[a]\n",
		"[a b]\n", "[]\n", "[a]\ncolour = \"red\"\n", "[a]\ndb = \"\"\n", "[a]\ndb = 'x'\n", "[a]\ndb = \"x\" y\n", "profile = \"a\"\nprofile = \"b\"\n", "\x00", "[a]\ndb = \"\\xff\"\n", "[a]\r\ndb = \"x\"\r\ndb = \"y\"\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, text := range []string{text, text + leak + "\"\n", "[a]\ntoken = \"" + leak + text} {
			_, profiles, err := cli.ParseConfig(text)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "line ") || strings.Contains(err.Error(), leak) {
					t.Errorf("%q: the error is %v", text, err)
				}
				continue
			}
			for name, profile := range profiles {
				for setting, value := range profile {
					if name == "" || value == "" || !strings.Contains(" db token output by timeout ", " "+setting+" ") {
						t.Errorf("%q: the profile %q has %s = %q", text, name, setting, value)
					}
				}
			}
		}
	})
}
