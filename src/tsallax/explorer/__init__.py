"""The explorer: a page that moves through solutions of one MDP, computed beforehand."""
