package obtain

// Every digest below was read in manifests that others pinned it in, never from the server that gives
// the bytes, and stands here as a literal so that a change of it is a change of the source (X9).

// dufsRelease is the folder of the release on GitHub.
const dufsRelease = "https://github.com/sigoden/dufs/releases/download/v0.46.0/"

// Dufs is the file server of X6. The root of each archive holds just the binary. The digests of every
// row but macOS x64 are those of two or more independent sources.
var Dufs = Tool{Name: "dufs", Version: "0.46.0", Assets: map[string]Asset{
	"linux/amd64": {
		File: "dufs-v0.46.0-x86_64-unknown-linux-musl.tar.gz", URL: dufsRelease + "dufs-v0.46.0-x86_64-unknown-linux-musl.tar.gz", Size: 2_898_409,
		SHA256: "817769f726613194bcff9d0e3e481eaccc86ac11208857614f36a8c02f410977", // of the archive
		Inner:  "2c91337a4a0cabd2ce444dc4b5ffda6c0d4180b4b94278d1345dc958bf24ea68", // of the binary
	},
	"linux/arm64": {
		File: "dufs-v0.46.0-aarch64-unknown-linux-musl.tar.gz", URL: dufsRelease + "dufs-v0.46.0-aarch64-unknown-linux-musl.tar.gz", Size: 2_618_631,
		SHA256: "1472123ae3aa07e49404d16b20305c2dec90c59883ebda9308717f7205e6511b", // of the archive
		Inner:  "5753d125dedb51bc4194e491de7d9081d7a1914a62c1fb4390d68ae55620334b", // of the binary
	},
	// These two digests rest on one source.
	"darwin/amd64": {
		File: "dufs-v0.46.0-x86_64-apple-darwin.tar.gz", URL: dufsRelease + "dufs-v0.46.0-x86_64-apple-darwin.tar.gz", Size: 2_764_841,
		SHA256: "f494db0de9e95764199781754147c4a341227d4794b1bcf5dac862bd21c1216a", // of the archive
		Inner:  "7a10900f1b541d3a2941cb44670e3376a179af87b211b8e652ac054d745090ab", // of the binary
	},
	"darwin/arm64": {
		File: "dufs-v0.46.0-aarch64-apple-darwin.tar.gz", URL: dufsRelease + "dufs-v0.46.0-aarch64-apple-darwin.tar.gz", Size: 2_462_445,
		SHA256: "2c73fa330447c344111aea9159621af5e2d4460b9227562e09138e5c01d3becf", // of the archive
		Inner:  "f8dd2a99048d254bab5e3d70e3384904c5e494cb6c38f0cf0417756556784f30", // of the binary
	},
	"windows/amd64": {
		File: "dufs-v0.46.0-x86_64-pc-windows-msvc.zip", URL: dufsRelease + "dufs-v0.46.0-x86_64-pc-windows-msvc.zip", Size: 2_323_817,
		SHA256: "21d829653ac1f178b124ed384e2a57df19b99ae404935cba9a1a5719c199b0bf", // of the archive
		Inner:  "3e443496f7811f931232e1f79eeca23d7d7ff1ea0c9dcac67b6586d69b47e11e", // of the binary
	},
	"windows/arm64": {
		File: "dufs-v0.46.0-aarch64-pc-windows-msvc.zip", URL: dufsRelease + "dufs-v0.46.0-aarch64-pc-windows-msvc.zip", Size: 2_331_484,
		SHA256: "530e061b5a26182a7cfebc3d473c397aaef931b07f6eccab9592d5df57ef0c39", // of the archive
		Inner:  "1b3f981a423cc26511d0a0a99a025bce5f2e20b4b0a82460600caf10684a8dba", // of the binary
	},
}}

// cloudflaredRelease is the folder of the release on GitHub.
const cloudflaredRelease = "https://github.com/cloudflare/cloudflared/releases/download/2026.10.0/"

// Cloudflared is the child of the tunnel. It is 2026.10.0 because no digest of 2026.10.1 is public. Each
// digest is that of three or more independent sources. There is no release for Windows on ARM.
//
// For macOS the release notes list the digest of the extracted binary under the name of the .tgz; some
// pin that one for the archive and refuse what is right.
var Cloudflared = Tool{Name: "cloudflared", Version: "2026.10.0", Assets: map[string]Asset{
	"linux/amd64": {
		File: "cloudflared-linux-amd64", URL: cloudflaredRelease + "cloudflared-linux-amd64", Size: 40_129_756,
		SHA256: "d33ff2d14475178d2012c2c56beba87389ac5ded27649519f198a7d3134a99db",
	},
	"linux/arm64": {
		File: "cloudflared-linux-arm64", URL: cloudflaredRelease + "cloudflared-linux-arm64", Size: 37_687_584,
		SHA256: "e6422b9d4f72d3194bc5a38676f13667c06666523217b842a877d72a80b5ac08",
	},
	"darwin/amd64": {
		File: "cloudflared-darwin-amd64.tgz", URL: cloudflaredRelease + "cloudflared-darwin-amd64.tgz", Size: 21_741_581,
		SHA256: "903845b81828c8cb3c5d13d816a2de71c06a3da5785469df8eb0e1b736d92f9f", // of the archive
		Inner:  "0560c9ab7281ac3f746055323623ed23bc0405b6dab9400474020cba33a978da", // of the binary
	},
	"darwin/arm64": {
		File: "cloudflared-darwin-arm64.tgz", URL: cloudflaredRelease + "cloudflared-darwin-arm64.tgz", Size: 19_809_074,
		SHA256: "a2f79ff7b9420aa537d74af239f376da170bbabeb529aec416002adac6a72e70", // of the archive
		Inner:  "72edfd3eea463aef4d5cb89e2e209cecb048cc756c2b01915de2e0ad7cb39830", // of the binary
	},
	"windows/amd64": {
		File: "cloudflared-windows-amd64.exe", URL: cloudflaredRelease + "cloudflared-windows-amd64.exe", Size: 55_365_048,
		SHA256: "86aee4017b26625cee8484c113558f48effa4cd47f7aa05fcf425604e5d2b23c",
	},
}}
