//go:build !linux

package sqlite

// diskOf knows nothing on this system.
func diskOf(string) (diskState, error) { return diskState{}, nil }

func mayWrite(string) bool { return true }

func mountOf(folder string) string { return folder }

func lockHolders(string, bool, int64, int64) []lockHolder { return nil }
