package migration

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluice-queue/sluice"
)

const header = "-- Says what it is for.\n-- works with programs from: 1\n"

func files(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out["schema/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestStepsAreNumberedFilesWithAHeader(t *testing.T) {
	t.Parallel()
	steps, err := Steps(files(map[string]string{"0002_more_jobs.sql": "-- More.\n-- works with programs from: 2\n", "0001_jobs.sql": header}), "schema")
	if err != nil || len(steps) != 2 || steps[0].Name != "jobs" || steps[1].Name != "more jobs" || steps[1].Version != 2 || steps[1].WorksFrom != 2 {
		t.Errorf("steps %+v, %v", steps, err)
	}
	for want, texts := range map[string]map[string]string{
		"is not named NNNN_name.sql":                {"1_jobs.sql": header},
		"schema file 0001 is missing":               {"0002_jobs.sql": header},
		"does not say which programs it works with": {"0001_jobs.sql": "-- Says what it is for.\n"},
	} {
		if _, err := Steps(files(texts), "schema"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want: %s", err, want)
		}
	}
}

func TestDatabaseNeedsTheStepsThatItHasNotHad(t *testing.T) {
	t.Parallel()
	steps := []sluice.Migration{{Version: 1, Checksum: "a", WorksFrom: 1}, {Version: 2, Checksum: "b", WorksFrom: 1}, {Version: 3, Checksum: "c", WorksFrom: 3}}
	for name, c := range map[string]struct {
		applied []Applied
		pending int
		is      error
		says    string
	}{
		"an empty database":                   {nil, 3, nil, ""},
		"one of an older program":             {[]Applied{{1, "a", 1}}, 2, nil, ""},
		"one of this program":                 {[]Applied{{1, "a", 1}, {2, "b", 1}, {3, "c", 3}}, 0, nil, ""},
		"a newer step that works with it":     {[]Applied{{1, "a", 1}, {2, "b", 1}, {3, "c", 3}, {4, "d", 2}}, 0, nil, ""},
		"a newer step that does not":          {[]Applied{{1, "a", 1}, {2, "b", 1}, {3, "c", 3}, {4, "d", 4}}, 0, sluice.ErrNewerSchema, "had schema step 4, which needs a program that knows step 4; this one knows 3"},
		"a step whose file was changed":       {[]Applied{{1, "a", 1}, {2, "x", 1}}, 0, nil, "schema step 2 () was applied with checksum x, this program has b: the file was changed"},
		"a move into it that is not finished": {[]Applied{{1, "a", 1}, {2, "b", 1}, {3, "c", 3}, {Moving, "", Moving}}, 0, sluice.ErrUnavailable, "jobs are being moved into this store"},
		"a step before the first":             {[]Applied{{0, "x", 0}, {1, "a", 1}, {2, "b", 1}, {3, "c", 3}}, 0, nil, ""},
	} {
		pending, err := Pending(steps, c.applied)
		if len(pending) != c.pending || c.is != nil && !errors.Is(err, c.is) || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d steps are pending, want %d; %v, want %q", name, len(pending), c.pending, err, c.says)
		}
	}
}
