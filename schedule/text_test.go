package schedule_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/schedule"
)

func TestStoresKeepADeclarationInForceOnce(t *testing.T) {
	t.Parallel()
	declared := schedule.Definition{Queue: "q", Every: time.Hour, Payload: []byte(`{"page":1}`), Labels: map[string]string{"from": "deploy"}}
	changed := declared
	changed.Payload = []byte(`{"page":2}`)
	for name, c := range map[string]struct {
		schedule schedule.Schedule
		pages    int
	}{
		"in force":     {schedule.Schedule{Name: "s", Definition: declared, Declared: &declared}, 1},
		"overridden":   {schedule.Schedule{Name: "s", Definition: changed, Declared: &declared}, 2},
		"not declared": {schedule.Schedule{Name: "s", Definition: declared}, 1},
	} {
		definition, progress, err := c.schedule.Body()
		if err != nil {
			t.Fatal(err)
		}
		if pages := strings.Count(definition, "page"); pages != c.pages {
			t.Errorf("%s: the text has %d payloads, want %d: %s", name, pages, c.pages, definition)
		}
		read, err := schedule.FromRow(schedule.Row{Name: "s", Definition: definition, Progress: progress})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read.Definition, c.schedule.Definition) || !reflect.DeepEqual(read.Declared, c.schedule.Declared) {
			t.Errorf("%s: read %+v, declared %+v", name, read.Definition, read.Declared)
		}
	}
}
