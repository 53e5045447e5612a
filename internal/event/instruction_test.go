package event_test

import "github.com/sluice-queue/sluice/internal/event"

func init() {
	for e, where := range map[*event.Event]string{
		event.ProcessQuiesced: "an instruction; see cmd/cli/testdata/script/holders.txt",
		event.ProcessStopped:  "the same",
		event.ProcessResumed:  "the same",
		event.ProtocolsDiffer: "processes of two releases; see upkeep/protocol_test.go",
	} {
		elsewhere[e] = where
	}
}
