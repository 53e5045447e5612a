package temporaltest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestALongBuildSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &progress{begun: time.Now()}
		var told strings.Builder
		go p.tell(t.Context(), &told)
		for _, part := range []string{
			"go: downloading go.temporal.io/api v1.2.3\ngo: down", "loading go.temporal.io/sdk v1.2.3\n", "internal/abi\n", "go.temporal.io/server/common\n",
			"# go.temporal.io/server/temporal\n", "./main.go:3:4: undefined: x\n",
		} {
			if _, err := p.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		const want = "building a Temporal server: 2 modules downloaded, 2 packages compiled after "
		if got := told.String(); got != want+"15s\n"+want+"30s\n" {
			t.Errorf("it said %q", got)
		}
		if got := p.other(); got != "# go.temporal.io/server/temporal\n./main.go:3:4: undefined: x\n" {
			t.Errorf("what went wrong is told as %q", got)
		}
	})
}
