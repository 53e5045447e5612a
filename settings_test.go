package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestDefaultSettingsBreakNoRule(t *testing.T) {
	t.Parallel()
	if err := sluice.DefaultSettings().Check(); err != nil {
		t.Error(err)
	}
}

func TestEverySettingIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"paused": "true", "lease": "2m", "timeout": "1h30m", "max_attempts": "7", "max_recoveries": "9", "backoff_base": "500ms",
		"backoff_factor": "1.5", "backoff_max": "2h", "backoff_jitter": "250ms", "backoff_full_jitter": "true", "recover_interval": "10s",
		"recover_batch": "50", "keep_completed": "30d", "keep_cancelled": "1d", "keep_dead": "0s", "keep_results": "2h", "payload_limit": "2048",
		"payload_schema": `{"type":"object"}`, "audit": "full",
		"rate": "20/m", "burst": "7", "concurrency": "12", "paused_until": "2030-01-02T03:04:05.678Z", "ageing": "0.25",
		"fair": "true", "tenant_concurrency": "5", "tenant_rate": "3/s", "tenant_burst": "9", "batch": "500",
		"interval": "5s", "claim_ahead": "3m", "jitter": "4s",
		"engine": "temporal", "run_namespace": "billing", "run_type": "PayOut", "run_task_queue": "payments", "run_timeout": "10m",
		"run_ref": "pay-{key}", "run_results": "true", "retry_runs": "true", "follow_interval": "5s", "max_waiting": "900", "tenant_max_waiting": "80", "shed": "true",
		"limits": "bank,ledger",
	}
	settings := sluice.DefaultSettings()
	for _, s := range sluice.AllSettings() {
		text, known := values[s.Name]
		if !known {
			t.Errorf("no value to try for %s", s.Name)
			continue
		}
		before := settings
		if err := s.Parse(&settings, text); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if settings == before {
			t.Errorf("%s=%s changes nothing", s.Name, text)
		}
		if got := s.Format(settings); got != text {
			t.Errorf("%s=%s is written back as %s", s.Name, text, got)
		}
		var copied sluice.Settings
		for _, part := range sluice.StoredSettings() {
			if err := part.SetStored(&copied, part.Stored(settings)); err != nil {
				t.Errorf("%s is stored as %v: %v", part.Name, part.Stored(settings), err)
			}
		}
		if s.Format(copied) != text {
			t.Errorf("%s=%s is stored as %v, which reads as %s", s.Name, text, s.Stored(settings), s.Format(copied))
		}
	}
	if err := settings.Check(); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	back := sluice.DefaultSettings()
	if err := json.Unmarshal(text, &back); err != nil || back != settings {
		t.Errorf("%s reads back as %+v, %v", text, back, err)
	}
}

func TestNonsenseIsRefusedWithTheRuleItBreaks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*sluice.Settings)
		want   string
	}{
		"a lease of nothing":             {func(s *sluice.Settings) { s.Lease = 0 }, "lease: 0s must be from 100ms to 1d"},
		"a negative time-out":            {func(s *sluice.Settings) { s.Timeout = -time.Second }, "timeout"},
		"no attempts":                    {func(s *sluice.Settings) { s.MaxAttempts = 0 }, "max_attempts: 0 must be from 1 to 10000"},
		"a factor below 1":               {func(s *sluice.Settings) { s.Backoff.Factor = 0.5 }, "backoff_factor"},
		"a limit named twice":            {func(s *sluice.Settings) { s.Limits = "bank,host,bank" }, `limits: "bank,host,bank" must be names of limits, each once, with commas between, such as bank,ledger`},
		"a maximum below the base":       {func(s *sluice.Settings) { s.Backoff.Max = time.Second }, "backoff_max: 1s is shorter than backoff_base, 2s"},
		"parts of a millisecond":         {func(s *sluice.Settings) { s.Lease += time.Microsecond }, "whole milliseconds"},
		"a limit beyond every store's":   {func(s *sluice.Settings) { s.PayloadLimit = 1 << 30 }, "payload_limit"},
		"an audit level that is unknown": {func(s *sluice.Settings) { s.Audit = "loud" }, "audit"},
		"an engine with a slash":         {func(s *sluice.Settings) { s.Engine = "temporal/billing" }, "engine: its name must not have a slash"},
		"refs that all are the same":     {func(s *sluice.Settings) { s.RunRef = "pay-{tenant}" }, "run_ref: it must name {id} or {key}"},
		"a ref of something unknown":     {func(s *sluice.Settings) { s.RunRef = "{id}-{amount}" }, "run_ref: it may name {queue}, {type}, {id}, {key}, {tenant}"},
		"a name without end":             {func(s *sluice.Settings) { s.RunType = strings.Repeat("x", 201) }, "run_type: 201 bytes are more than 200"},
	} {
		settings := sluice.DefaultSettings()
		c.change(&settings)
		err := settings.Check()
		if !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"paused": "maybe", "lease": "long", "max_attempts": "3.5", "backoff_factor": "two", "keep_dead": "xd"} {
		setting, err := sluice.SettingNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		settings := sluice.DefaultSettings()
		if err := setting.Parse(&settings, text); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s=%s: %v", name, text, err)
		}
		if err := setting.SetStored(&settings, struct{}{}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s stored as a struct: %v", name, err)
		}
	}
	if _, err := sluice.SettingNamed("leese"); !errors.Is(err, sluice.ErrNotFound) || !strings.Contains(err.Error(), "lease") {
		t.Errorf("an unknown setting: %v", err)
	}
	if _, err := sluice.QueueFromRow([]any{"q"}); err == nil {
		t.Error("a row that is too short is taken")
	}
	row := make([]any, 5+len(sluice.StoredSettings()))
	if _, err := sluice.QueueFromRow(row); err == nil {
		t.Error("a row of nulls is taken")
	}
}

func TestOlderProgramsReadWhatNewerOnesWrote(t *testing.T) {
	t.Parallel()
	settings := sluice.DefaultSettings()
	if err := json.Unmarshal([]byte(`{"lease":"2m","rate_of_the_future":"500/5s"}`), &settings); err != nil || settings.Lease != 2*time.Minute {
		t.Errorf("lease %s, %v", settings.Lease, err)
	}
	for _, bad := range []string{`[]`, `{"lease":"soon"}`} {
		if err := json.Unmarshal([]byte(bad), &settings); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func FuzzParseSetting(f *testing.F) {
	f.Add("lease", "2m")
	f.Add("keep_dead", "90d")
	f.Add("backoff_factor", "1e309")
	f.Fuzz(func(t *testing.T, name, text string) {
		setting, err := sluice.SettingNamed(name)
		if err != nil {
			return
		}
		settings := sluice.DefaultSettings()
		if setting.Parse(&settings, text) != nil || settings.Check() != nil {
			return
		}
		again := sluice.DefaultSettings()
		if err := setting.Parse(&again, setting.Format(settings)); err != nil || again != settings {
			t.Errorf("%s=%q is written as %q, which reads as %+v, %v", name, text, setting.Format(settings), again, err)
		}
	})
}

// panicking is a decorator whose Queues panics.
type panicking struct{ sluice.Store }

func (panicking) Queues(context.Context, sluice.QueueFilter) ([]sluice.Queue, error) {
	panic("decorator")
}

func TestStoreThatPanicsCanBeRecoveredFrom(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(panicking{memory.New(memory.Options{})}, sluice.ClientOptions{})
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not arrive")
				}
			}()
			_, _ = client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
		}()
	}
}

func TestQueueThatIsGivenAnEngineIsAuditedInFull(t *testing.T) {
	t.Parallel()
	engine := func(s *sluice.Settings) error { s.Engine = "temporal"; return nil }
	for name, c := range map[string]struct {
		before func(*sluice.Settings)
		change func(*sluice.Settings) error
		want   sluice.AuditLevel
	}{
		"nothing is said of the audit": {nil, engine, sluice.AuditFull},
		"something is said": {nil, func(s *sluice.Settings) error {
			s.Engine, s.Audit = "temporal", sluice.AuditNotable
			return nil
		}, sluice.AuditNotable},
		"it has an engine":    {func(s *sluice.Settings) { s.Engine = "local" }, engine, sluice.AuditNotable},
		"it is given no more": {nil, func(s *sluice.Settings) error { s.MaxAttempts = 7; return nil }, sluice.AuditNotable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := sluice.DefaultSettings()
			if c.before != nil {
				c.before(&settings)
			}
			if err := settings.Change(c.change); err != nil || settings.Audit != c.want {
				t.Errorf("audit is %s, want %s: %v", settings.Audit, c.want, err)
			}
		})
	}
}
