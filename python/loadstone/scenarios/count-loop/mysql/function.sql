-- No function: the client counts in a loop.
do 0;
