// Package deploy holds what Sluice is run with elsewhere: an image, a systemd unit, Kubernetes manifests. Its tests read
// them with the libraries of those who will read them, build the image's content, and start the very commands that are
// in them, as the user that is in them, against a real store.
package deploy
