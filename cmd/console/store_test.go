package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func TestTheStoreShowsItsPartsTheLargestFirst(t *testing.T) {
	t.Parallel()
	var view storeView
	err := json.Unmarshal([]byte(`{"kind":"postgres","metrics":[
		{"name":"table_bytes","label":"table","of":"audit","value":2048,"unit":"bytes"}, {"name":"dead_rows","label":"table","of":"jobs","value":12000,"unit":"rows"},
		{"name":"table_bytes","label":"table","of":"jobs","value":1717986918,"unit":"bytes"}, {"name":"vacuum_age_seconds","label":"table","of":"jobs","value":90,"unit":"seconds"},
		{"name":"index_bytes","label":"index","of":"jobs_due","value":512,"unit":"bytes"}, {"name":"connections","value":7}]}`), &view)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, part := range view.Parts() {
		got = append(got, fmt.Sprintf("%s %q", part.Title, part.Columns))
		for _, row := range part.Rows {
			got = append(got, fmt.Sprintf("%s %q", row.Name, row.Cells))
		}
	}
	want := []string{
		`Tables ["size" "dead rows" "vacuum age"]`, `jobs ["1.6 GiB" "12 000 rows" "1m30s"]`, `audit ["2 KiB" "" ""]`,
		`Indexes ["size"]`, `jobs_due ["512 B"]`, `Figures ["Value"]`, `connections ["7"]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if view.Note() != nil || (storeView{Kind: "sqlite"}).Note() == nil {
		t.Error("SQLite alone needs a note, because it measures neither tables nor statements")
	}
}
