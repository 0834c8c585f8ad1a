from ragfilter import served

served.tune()
