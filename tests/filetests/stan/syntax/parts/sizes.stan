int N; // how many
