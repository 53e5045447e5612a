package schedule

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// definitionText is a definition in JSON, with durations as people write them.
type definitionText struct {
	Queue         string            `json:"queue"`
	Cron          string            `json:"cron,omitempty"`
	Every         string            `json:"every,omitempty"`
	At            []time.Time       `json:"at,omitempty"`
	Zone          string            `json:"zone,omitempty"`
	Start         time.Time         `json:"start,omitzero"`
	End           time.Time         `json:"end,omitzero"`
	MaxFires      int               `json:"max_fires,omitempty"`
	Payload       json.RawMessage   `json:"payload,omitempty"`
	Key           string            `json:"key,omitempty"`
	Tenant        string            `json:"tenant,omitempty"`
	Priority      int               `json:"priority,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Overlap       Overlap           `json:"overlap,omitempty"`
	CatchUp       CatchUp           `json:"catch_up,omitempty"`
	CatchUpWindow string            `json:"catch_up_window,omitempty"`
	Jitter        string            `json:"jitter,omitempty"`
	PauseAfter    int               `json:"pause_after,omitempty"`
}

func (d Definition) text() definitionText {
	return definitionText{
		d.Queue, d.Cron, spanText(d.Every), d.At, d.Zone, d.Start, d.End, d.MaxFires, d.Payload, d.Key, d.Tenant, d.Priority, d.Labels,
		d.Overlap, d.CatchUp, spanText(d.CatchUpWindow), spanText(d.Jitter), d.PauseAfter,
	}
}

// spanText writes a duration. 0: no text.
func spanText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return sluice.FormatDuration(d)
}

// definition reads the text of a definition.
func (t definitionText) definition() (d Definition, err error) {
	d = Definition{
		Queue: t.Queue, Cron: t.Cron, At: t.At, Zone: t.Zone, Start: t.Start, End: t.End, MaxFires: t.MaxFires, Payload: t.Payload,
		Key: t.Key, Tenant: t.Tenant, Priority: t.Priority, Labels: t.Labels, Overlap: t.Overlap, CatchUp: t.CatchUp, PauseAfter: t.PauseAfter,
	}
	for _, s := range []struct {
		field, text string
		into        *time.Duration
	}{{"every", t.Every, &d.Every}, {"catch_up_window", t.CatchUpWindow, &d.CatchUpWindow}, {"jitter", t.Jitter, &d.Jitter}} {
		if *s.into, err = feature.Duration(s.field, s.text); err != nil {
			return d, err
		}
	}
	return d, nil
}

// MarshalJSON writes durations as people write them.
func (d Definition) MarshalJSON() ([]byte, error) { return json.Marshal(d.text()) }

// UnmarshalJSON reads the text of MarshalJSON.
func (d *Definition) UnmarshalJSON(text []byte) error {
	var t definitionText
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	read, err := t.definition()
	if err == nil {
		*d = read
	}
	return err
}

// content is the part of a schedule that people change. The audit keeps it.
type content struct {
	definitionText
	Paused   bool        `json:"paused,omitempty"`
	Note     string      `json:"note,omitempty"`
	Declared *Definition `json:"declared,omitempty"`
}

func (s Schedule) content() content { return content{s.text(), s.Paused, s.Note, s.Declared} }

// set replaces the part of a schedule that people change.
func (s *Schedule) set(c content) (err error) {
	s.Definition, err = c.definition()
	s.Paused, s.Note, s.Declared = c.Paused, c.Note, c.Declared
	return err
}

// ForAudit returns the part of a schedule that people change, for the audit.
func (s Schedule) ForAudit() any { return s.content() }

// kept is the part of a schedule that people change, as stores keep it: a declaration that is in force only once.
type kept struct {
	content
	AsDeclared bool `json:"as_declared,omitempty"`
}

// Body returns the text in which stores keep the part that people change, and the text of the progress.
func (s Schedule) Body() (definition, progress string, err error) {
	of := kept{content: s.content()}
	if of.AsDeclared = s.Declared != nil && !s.Overridden(); of.AsDeclared {
		of.Declared = nil
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "", "", err
	}
	progress, err = s.Progress.Text()
	return string(text), progress, err
}

// keptProgress is a progress as stores keep it.
type keptProgress struct {
	Progress
	Seed string `json:"seed,omitempty"`
}

// Text returns the text in which stores keep a progress.
func (p Progress) Text() (string, error) {
	text, err := json.Marshal(keptProgress{p, p.seed})
	return string(text), err
}

// Row is a schedule as a store keeps it.
type Row struct {
	Name                 string
	Definition, Progress string // the texts of Body
	NextAt               time.Time
	Version              int64
	ChangedAt            time.Time
	ChangedBy, Reason    string
	Now                  time.Time
}

// FromRow reads a schedule that a store keeps.
func FromRow(row Row) (Schedule, error) {
	s := Schedule{
		Name: row.Name, NextAt: feature.Instant(row.NextAt), Version: row.Version,
		ChangedAt: feature.Instant(row.ChangedAt), ChangedBy: row.ChangedBy, Reason: row.Reason, Now: feature.Instant(row.Now),
	}
	var of kept
	if err := json.Unmarshal([]byte(row.Definition), &of); err != nil {
		return s, fmt.Errorf("schedule %q is stored in a form that this program cannot read: %w", row.Name, err)
	}
	var progress keptProgress
	if err := json.Unmarshal([]byte(row.Progress), &progress); err != nil {
		return s, fmt.Errorf("the progress of schedule %q is stored in a form that this program cannot read: %w", row.Name, err)
	}
	s.Progress = progress.Progress
	s.Progress.seed = progress.Seed
	if err := s.set(of.content); err != nil {
		return s, err
	}
	if of.AsDeclared {
		declared := s.Definition.clone()
		s.Declared = &declared
	}
	return s, nil
}

// scheduleText is a schedule in JSON.
type scheduleText struct {
	Name string `json:"name"`
	content
	Overridden bool      `json:"overridden,omitempty"`
	NextAt     time.Time `json:"next_at,omitzero"`
	Progress   Progress  `json:"progress"`
	Version    int64     `json:"version"`
	ChangedAt  time.Time `json:"changed_at,omitzero"`
	ChangedBy  string    `json:"changed_by,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// MarshalJSON writes a schedule with all its fields on one level.
func (s Schedule) MarshalJSON() ([]byte, error) {
	return json.Marshal(scheduleText{s.Name, s.content(), s.Overridden(), s.NextAt, s.Progress, s.Version, s.ChangedAt, s.ChangedBy, s.Reason})
}

// UnmarshalJSON reads the text of MarshalJSON.
func (s *Schedule) UnmarshalJSON(text []byte) error {
	var t scheduleText
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	*s = Schedule{
		Name: t.Name, NextAt: t.NextAt, Progress: t.Progress, Version: t.Version, ChangedAt: t.ChangedAt, ChangedBy: t.ChangedBy, Reason: t.Reason,
	}
	return s.set(t.content)
}
